/* Several reveals over one timeline, or a sheet of pictures.

   value = { run, kind: "sides", title, summary, sides: [{ label, ...value of a reveal }], done, verdict }
         | { run, kind: "sweep", title, summary, settings, steps, guidance, size, cells: [{ row, column, picture,
             computed, seconds }], done }
         | { run, error } */
function mountCompare(element, trigger, props, watch) {
  const stage = mountStage(element), { root, find, colour } = stage, page = document.documentElement;
  const FAIRNESS = {
    sides: "Steps alternate, and each clock runs only during its own steps. Decoding the picture is left out.",
    sweep: "Seconds leave out decoding the picture. Choose a picture to use its settings.",
  };
  const kept = { sides: null, sweep: null };  // the last value of each kind
  const states = { sides: "idle", sweep: "idle" };
  let panels = [];        // per side: canvas, numbers, images[step], born[cell], codes[cell]
  let built = "";         // what the panels were built for
  let shown = -1, view = "picture", lines = true, follow = true;
  let chosen = null;      // cell of the sheet

  const mode = () => page.dataset.compare || props.mode;
  const kind = () => (mode() === "sweep" ? "sweep" : "sides");
  const run = () => kept[kind()];
  const made = () => (kept.sides ? Math.max(...kept.sides.sides.map((side) => side.steps.length)) : 0);
  const last = () => made() - 1;

  /* ---------- stages ---------- */
  function build() {
    const value = kept.sides;
    const fits = value && value.sides.length === (props.labels[mode()] || []).length;
    const labels = fits || mode() === "sweep" ? value?.sides.map((side) => side.label) : props.labels[mode()];
    const key = `${value?.run}|${labels}`;
    if (!labels || key === built) return;
    built = key;
    if (!fits) kept.sides = null;
    panels = labels.map((label, which) => {
      const figure = make("figure", "compare-side"), canvas = make("canvas", "viewer-canvas");
      const numbers = mountSideNumbers({ computed: "Codes computed", seconds: "Time", rate: "Pictures/s" });
      canvas.setAttribute("role", "img");
      figure.append(make("figcaption", "", label), canvas, numbers.list);
      const cells = value ? value.sides[0].grid[0] * value.sides[0].grid[1] : 0;
      return { figure, canvas, numbers, label, which, images: [], born: new Array(cells).fill(-1), codes: new Array(cells).fill(-1) };
    });
    find(".compare-sides").replaceChildren(...panels.map((panel) => panel.figure));
    timeline.build(value ? Math.max(...value.sides.map((side) => side.total)) : 16);
    if (!value) shown = -1;
    resize();
  }

  function shape() {
    const side = kept.sides?.sides[0];
    return { grid: side?.grid || props.grid, size: side?.size || props.size };
  }

  function resize() {
    const width = find(".compare-sides").clientWidth;
    if (width && panels.length) {
      const { size } = shape(), density = window.devicePixelRatio || 1;
      const gap = parseFloat(getComputedStyle(find(".compare-sides")).columnGap) || 0;
      const room = Math.min((width - gap * (panels.length - 1)) / panels.length, 448);
      const whole = Math.floor((room * density) / Math.max(...size));
      const scale = whole >= 2 ? whole / density : room / Math.max(...size);
      for (const { canvas } of panels) {
        sizeCanvas(canvas, size, scale);
        canvas.parentElement.style.width = canvas.style.width;
      }
    }
    draw();
  }

  function draw() {
    const { grid, size } = shape();
    for (const panel of panels) {
      const side = kept.sides?.sides[panel.which];
      const at = Math.min(shown, panel.images.length - 1);
      drawCells(panel.canvas, {
        grid, size, shown: at, lines, view, colour, total: side?.total || 1, born: side ? panel.born : null,
        codes: panel.codes, image: panel.images[at], font: getComputedStyle(find(".viewer-settings")).fontFamily,
        hint: side ? new Set() : firstCells(grid, Math.round((grid[0] * grid[1]) / 9)),
        glow: side && at === shown ? { age: glow.age(), fades: kept.sides.done && shown === last() } : null,
      });
    }
  }

  const glow = mountGlow(draw);

  /* ---------- words and numbers ---------- */
  function describe() {
    const value = run(), state = root.dataset.state = states[kind()];
    root.dataset.kind = kind();
    find(".viewer-title").textContent = { idle: "Nothing compared yet", waiting: life.words() }[state] ?? value?.title ?? "";
    find(".viewer-settings").textContent = value?.summary || "Settings and downloads will be here.";
    find(".viewer-after").inert = !(value && ["done", "stopped"].includes(state));
    find(".compare-verdict").textContent = value ? value.verdict || "" : state === "waiting" ? "" : props.empty[mode()];
    if (value) find(".compare-verdict").append(make("small", "", FAIRNESS[kind()]));
    if (kind() === "sides") {
      const records = panels.map((panel) => kept.sides?.sides[panel.which].steps[Math.min(shown, kept.sides.sides[panel.which].steps.length - 1)]);
      const most = mostComputed(kept.sides?.sides ?? []);
      panels.forEach(({ numbers, canvas, label, which }, k) => {
        const record = records[k], side = kept.sides?.sides[which];
        const finished = record && side.done && shown >= side.steps.length - 1;
        numbers.paint(record, most, finished && record.seconds > 0 ? (1 / record.seconds).toPrecision(2) : null);
        canvas.setAttribute("aria-label", record ? `${label}, step ${shown + 1}` : `${label}: empty grid of codes`);
      });
      const step = kept.sides && shown >= 0 ? `Step ${shown + 1} of ${kept.sides.sides[0].total}` : "Nothing to show yet";
      timeline.paint(Array.from({ length: made() }, (_, k) => Math.max(...kept.sides.sides.map((side) => side.steps[k]?.filled[0].length || 0))), step);
      find(".compare-use").hidden = true;
    } else {
      find(".compare-use").hidden = false;
      find(".compare-use").disabled = !chosen;
      find(".compare-use").title = chosen ? "Put these settings into the form of the image tab" : "Choose a picture of the sheet first";
    }
  }

  /* ---------- sheet ---------- */
  function buildSheet() {
    const value = kept.sweep, place = find(".compare-sheet");
    if (!value) {
      place.replaceChildren(...Array.from({ length: 16 }, () => make("span", "compare-blank")));
      place.dataset.blank = "";
      return;
    }
    delete place.dataset.blank;
    const table = make("table"), head = make("tr");
    head.append(make("td"), ...value.guidance.map((one) => Object.assign(make("th", "", `Guidance ${one}`), { scope: "col" })));
    table.append(head, ...value.steps.map((steps, row) => {
      const line = make("tr");
      line.append(Object.assign(make("th", "", steps === 1 ? "1 step" : `${steps} steps`), { scope: "row" }));
      line.append(...value.guidance.map((guidance, column) => {
        const cell = make("td"), button = Object.assign(make("button"), { type: "button", disabled: true });
        button.dataset.cell = `${row},${column}`;
        button.setAttribute("aria-label", `${steps} steps, guidance ${guidance}`);
        button.setAttribute("aria-pressed", "false");
        button.addEventListener("click", () => {
          chosen = chosen?.row === row && chosen?.column === column ? null : { row, column };
          table.querySelectorAll("button").forEach((other) =>
            other.setAttribute("aria-pressed", other.dataset.cell === `${chosen?.row},${chosen?.column}`));
          describe();
        });
        cell.append(button, make("span", "compare-time", "–"));
        return cell;
      }));
      return line;
    }));
    place.replaceChildren(table);
  }

  function fillSheet() {
    for (const cell of kept.sweep.cells) {
      const button = find(`[data-cell="${cell.row},${cell.column}"]`);
      if (!button || !button.disabled) continue;
      button.disabled = false;
      button.append(Object.assign(new Image(), { src: cell.picture, alt: "" }));
      button.nextSibling.textContent = `${clock(cell.seconds)} s`;
    }
  }

  /* ---------- moving ---------- */
  function show(step, bright) {
    if (last() < 0) return;
    shown = Math.min(Math.max(step, 0), last());
    glow.set(bright);
    describe();
    draw();
  }
  const timeline = mountTimeline(find(".viewer-timeline"), {
    last, shown: () => shown, show,
    steer(step) {
      show(step, false);
      follow = shown === last();
    },
  });

  stage.onView((name) => {
    view = name;
    draw();
  });
  stage.onGrid((on) => {
    lines = on;
    draw();
  });
  stage.onSave((kind) => trigger("save", { kind, step: Math.max(shown, 0) }));
  find(".compare-use").addEventListener("click", () => {
    const value = kept.sweep;
    if (chosen) window.pgm.bring({ ...value.settings, steps: value.steps[chosen.row], guidance_scale: value.guidance[chosen.column] });
  });

  /* ---------- what arrives ---------- */
  function receive() {
    const value = props.value;
    if (!life.takes(value)) return;
    const fresh = value.run !== kept[value.kind]?.run;
    kept[value.kind] = value;
    states[value.kind] = value.done ? "done" : "running";
    if (value.kind === "sides") takeSides(value, fresh);
    else takeSheet(fresh);
    if (value.done) window.pgm.running("compare", false);
    describe();
  }

  function takeSides(value, fresh) {
    if (fresh) {
      timeline.pause();
      [shown, follow] = [-1, true];
      build();
    }
    let newest = null;
    value.sides.forEach((side, which) => {
      const panel = panels[which];
      for (let k = panel.images.length; k < side.steps.length; k++) {
        newest = new Image();
        newest.addEventListener("load", draw);
        newest.src = side.steps[k].previews[0];
        panel.images.push(newest);
        side.steps[k].filled[0].forEach((cell, at) => {
          panel.born[cell] = k;
          panel.codes[cell] = side.steps[k].codes[0][at];
        });
      }
    });
    const reveal = () => follow && show(last(), true);
    if (newest) newest.decode().then(reveal, reveal);
    else draw();
  }

  function takeSheet(fresh) {
    if (fresh) {
      chosen = null;
      buildSheet();
    }
    fillSheet();
  }

  const life = mountRun("compare", {
    holds: (value) => value.run === kept[value.kind]?.run,
    waiting: () => states[kind()] === "waiting",
    wait() {
      timeline.pause();
      states[kind()] = "waiting";
    },
    settle() {
      for (const name of ["sides", "sweep"]) {
        const value = kept[name], some = name === "sides" ? made() : value?.cells.length;
        if (!["running", "waiting"].includes(states[name])) continue;
        states[name] = value?.done ? "done" : some ? "stopped" : "idle";
      }
      describe();
      draw();
    },
    describe,
  });

  /* A choice that cannot be made is greyed; the reason stands above the choices. Gradio draws them anew at times. */
  function block() {
    const input = document.querySelector('#compare-mode input[value="twin"]');
    if (!input) return;
    input.disabled = Boolean(props.blocked);
    input.closest("label").title = props.blocked || "";
    input.closest("label").toggleAttribute("data-blocked", Boolean(props.blocked));
  }

  function switchMode() {
    block();
    build();
    describe();
    draw();
  }

  page.dataset.compare ||= props.mode;
  new ResizeObserver(() => { block(); resize(); }).observe(element);
  const rail = document.getElementById("compare-rail");
  if (rail) new MutationObserver(block).observe(rail, { childList: true, subtree: true });
  stage.onTheme(draw);
  new MutationObserver(switchMode).observe(page, { attributes: true, attributeFilter: ["data-compare"] });
  watch("value", receive);
  watch(["blocked", "grid", "size"], switchMode);
  buildSheet();
  switchMode();
  receive();
}
