/* Shows a reveal: every step the server has sent is kept here, so scrubbing and playing ask the server nothing.

   value = { run, title, channel, grid: [rows, columns], size: [width, height], total, later, count, seeds, sampler,
             summary, settings, steps: [{ round, taken_back: [[index]], filled: [[index]], codes: [[code]],
             previews: ["data:..."], known, computed, masked, seconds }], done, error }
   The last `later` steps are second looks: round r takes cells back, which are then unknown, and fills them again.
   An edit has more: given: { cells: [[index]], codes: [[code]] } known from the start, and the previews start (what it
   starts from) and before (the picture as it was).
   `taken_back`, `filled`, `codes` and `previews` have one entry per picture; indices count cells row by row. Steps only ever grow. */
function mountViewer(element, trigger, props, watch) {
  const stage = mountStage(element), { root, find, colour, put } = stage;
  const canvas = find(".viewer-canvas"), strip = find(".viewer-strip"), channel = props.channel;

  let run = null;        // the value shown, null before the first run
  let images = [];       // images[step][picture]: decoded previews
  let arrivals = [];     // arrivals[picture]: when its cells came in, and their codes
  let start = null, original = null;  // of an edit: what it starts from, and the picture as it was
  let shown = -1, picture = 0, view = "picture", lines = true;
  let follow = true, hint = "";
  let grid = props.grid || [16, 16], size = props.size || [64, 64];

  const last = () => (run ? run.steps.length - 1 : -1);
  const finished = () => ["done", "stopped"].includes(root.dataset.state);
  const whole = (step) => step.known === grid[0] * grid[1];
  /* The step a stage comes to rest on: the last one, unless a run was stopped while codes of a whole picture were away. */
  function rest() {
    if (root.dataset.state !== "stopped" || !run || whole(run.steps[last()])) return last();
    const before = run.steps.findLastIndex(whole);
    return before < 0 ? last() : before;
  }
  const clean = () => finished() && shown === rest();  // the picture in the end carries no marks

  /* ---------- sizes ---------- */
  /* Thumbnails of about 128 px, four or two in a row, so that rows are even. */
  function row(width) {
    const count = run?.count || 1, gap = 12;
    const room = Math.floor((width + gap) / (128 + gap));
    const number = room >= count ? count : room >= 4 || count > 4 ? 4 : 2;
    const side = Math.min(128, (width - gap * (number - 1)) / number);
    return { side, width: number * (side + gap) };
  }

  function resize() {
    const width = element.clientWidth;
    if (!width) return;
    root.style.setProperty("--stage", sizeStage(canvas, size, width));
    const across = row(Math.min(width, 892)), small = fitWhole(across.side, Math.max(...size));
    strip.style.maxWidth = `${across.width}px`;
    strip.querySelectorAll("canvas").forEach((thumb) => sizeCanvas(thumb, size, small));
    draw();
  }

  /* ---------- drawing ---------- */
  function drawPicture(target, which, marks) {
    const large = target === canvas, cells = run ? arrivals[which].at(shown) : null;
    drawCells(target, {
      grid, size, shown, lines: large && lines, view: large ? view : "picture", colour,
      total: run?.total || 1, born: cells?.born ?? null, codes: cells?.held,
      image: view === "before" && large ? original : images[shown]?.[which] ?? start,
      hint: run?.given ? { has: () => true } : run ? new Set() : firstCells(grid, Math.round((grid[0] * grid[1]) / 9)),
      glow: marks ? { age: glow.age(), fades: clean() } : null, font: getComputedStyle(find(".viewer-seed")).fontFamily,
    });
  }

  function draw() {
    drawPicture(canvas, picture, true);
    strip.querySelectorAll("canvas").forEach((thumb, which) => drawPicture(thumb, which, false));
  }

  const glow = mountGlow(() => drawPicture(canvas, picture, true));

  /* ---------- words and numbers ---------- */
  const NOTES = {
    before: "The picture as it was before the edit.",
    edit: "Tinted cells are drawn anew around the rest, which is known from the start.",
    edited: "A part was drawn anew around the rest. Before shows the picture as it was.",
    picture: "Cells fill in as their codes become known; this step's cells are in the accent colour.",
    again: "the codes that fit worst were taken back and are drawn anew.",
    left: "Stopped in a second look: this is the whole picture before it. The timeline shows what came after.",
    codes: "Each cell is one code: the number of an entry in the tokenizer's codebook.",
    halton: "Dark came first, pale last. Halton scatters each step evenly, like rain.",
    confidence: "Dark came first, pale last. Confidence takes the surest codes first, so islands grow.",
    random: "Dark came first, pale last. Random order lets chance decide, so it clumps and leaves gaps.",
    late: "Dark came first, pale last. The palest cells were drawn anew in second looks.",
    raster: "Dark came first, pale last. Raster goes row by row, like reading.",
  };

  function noteOf(look) {
    if (view === "order") return look ? NOTES.late : NOTES[run?.sampler || props.sampler] || NOTES.halton;
    if (view !== "picture") return NOTES[view];
    if (clean() && shown < last()) return NOTES.left;
    if (look && !clean()) return `${look}: ${NOTES.again}`;
    return NOTES[run?.given ? (clean() ? "edited" : "edit") : "picture"];
  }

  function describe() {
    const step = run?.steps[shown], look = secondLook(step, run?.settings.refine_rounds);
    find(".viewer-note p").textContent = noteOf(look);
    find(".viewer-ramp").hidden = view !== "order";
    if (!step) {
      put("step", "–");
      put("known", "–", `of ${number(grid[0] * grid[1])}`);
      put("computed", "–", "vs a masked model");
      put("seconds", "–");
      find(".viewer-meter i").style.width = "0";
    } else {
      put("step", number(shown + 1), `of ${number(run.total)}`);
      put("known", number(step.known), `of ${number(grid[0] * grid[1])}`);
      put("computed", number(step.computed), `vs ${number(step.masked)} masked`);
      put("seconds", step.seconds.toFixed(step.seconds < 10 ? 1 : 0), "s");
      find(".viewer-meter i").style.width = `${Math.min(100, (100 * step.computed) / Math.max(step.masked, 1))}%`;
    }
    const words = { idle: "No picture yet", waiting: life.words() }[root.dataset.state];
    stage.title(words ?? run?.title ?? "", words ? ""
      : root.dataset.state === "stopped" ? `stopped at step ${last() + 1} of ${run.total}` : clean() ? "" : look.toLowerCase());
    find(".viewer-empty").textContent = run || root.dataset.state === "waiting" ? "" : hint || props.empty || "";
    canvas.setAttribute("aria-label", step ? `${run.title}, step ${shown + 1} of ${run.total}` : "Empty grid of codes");
    find('[data-save="png"]').textContent = shown === last() || !run ? "Save PNG" : `Save step ${shown + 1}`;
    if (!find(".viewer-seed").dataset.words) find(".viewer-seed").textContent = run ? `Seed ${run.seeds[picture]}` : "Seed –";
    find(".viewer-settings").textContent = run?.summary || "Settings, seed and downloads of your picture will be here.";
    find('[data-save="zip"]').hidden = (run?.count || 1) < 2;
    find('[data-save="mp4"]').hidden = !props.movies;
    find(".viewer-link").hidden = Boolean(run && !run.links);
    find(".viewer-after").inert = !(finished() && run);
  }

  const timeline = mountTimeline(find(".viewer-timeline"), { last, shown: () => shown, show, steer: scrub });
  const buildTicks = () => (run ? timeline.build(run.total, run.later) : timeline.build(props.total || 32));
  const pause = timeline.pause;

  function paintTicks() {
    const step = run?.steps[shown];
    timeline.paint(
      (run?.steps ?? []).map((one) => one.filled[picture].length),
      step ? [`Step ${shown + 1} of ${run.total}`, secondLook(step, run.settings.refine_rounds), `${step.known} codes known`].filter(Boolean).join(", ") : "Nothing to show yet",
    );
  }

  function buildStrip() {
    const count = run?.count || 1;
    strip.hidden = count < 2;
    strip.replaceChildren(...(count < 2 ? [] : Array.from({ length: count }, (_, which) => {
      const button = Object.assign(document.createElement("button"), { type: "button" });
      button.setAttribute("aria-label", `Picture ${which + 1} of ${count}`);
      button.setAttribute("aria-pressed", which === picture);
      button.append(document.createElement("canvas"));
      button.addEventListener("click", () => choose(which));
      return button;
    })));
  }

  function refresh() { describe(); paintTicks(); }

  /* ---------- moving through the steps ---------- */
  function show(step, bright) {
    if (last() < 0) return;
    shown = Math.min(Math.max(step, 0), last());
    glow.set(bright);
    refresh();
    draw();
  }

  function choose(which) {
    picture = which;
    strip.querySelectorAll("button").forEach((button, k) => button.setAttribute("aria-pressed", k === which));
    refresh();
    draw();
  }

  function scrub(step) {
    show(step, false);
    follow = shown === last();
  }

  stage.onView((name) => {
    view = name;
    refresh();
    draw();
  });
  stage.onGrid((on) => {
    lines = on;
    draw();
  });
  find(".viewer-seed").addEventListener("click", (event) => window.pgm.copy(String(run.seeds[picture]), event.currentTarget).then(describe));
  find(".viewer-link").addEventListener("click", (event) => window.pgm.copyLink(run.links[picture], event.currentTarget));
  stage.all("[data-reuse]").forEach((button) => button.addEventListener("click", () =>
    trigger("reuse", { what: button.dataset.reuse, picture })));
  stage.onSave((kind) => trigger("save", { kind, picture, step: shown }));

  /* ---------- what arrives ---------- */
  function load(source) {
    const image = new Image();
    image.addEventListener("load", () => { if (images[shown]?.includes(image) || [start, original].includes(image)) draw(); });
    image.src = source;
    return image;
  }

  function receive() {
    const value = props.value;
    if (!life.takes(value)) return;
    if (value.run !== run?.run) begin(value);
    const before = last(), had = images.length;
    run = value;
    for (let k = had; k < run.steps.length; k++) {
      const step = run.steps[k];
      images.push(step.previews.map(load));
      arrivals.forEach((cells, which) => cells.add(step.taken_back[which], step.filled[which], step.codes[which]));
    }
    if (run.done) {
      if (root.dataset.state !== "done") window.dispatchEvent(new CustomEvent("pgm:done", { detail: { channel, value } }));
      root.dataset.state = "done";
      window.pgm.running(channel, false);
    }
    const latest = images[last()]?.[picture];
    const reveal = () => (follow && run === value ? show(rest(), last() > had - 1 || run.done) : refresh());
    if (follow && latest && !latest.complete) latest.decode().then(reveal, reveal);
    else if (last() >= 0) reveal();
    else refresh();
    if (before < 0 && last() < 0) draw();
  }

  function begin(value) {
    pause();
    run = value;
    [grid, size] = [value.grid, value.size];
    images = [];
    arrivals = Array.from({ length: value.count }, (_, which) =>
      mountArrivals(grid[0] * grid[1], value.given?.cells[which], value.given?.codes[which]));
    [start, original] = [value.start, value.before].map((source) => (source ? load(source) : null));
    [shown, picture, follow] = [-1, 0, true];
    root.dataset.state = "running";
    buildTicks();
    buildStrip();
    resize();
  }

  const life = mountRun(channel, {
    holds: (value) => value.run === run?.run,
    waiting: () => root.dataset.state === "waiting",
    wait() {
      pause();
      root.dataset.state = "waiting";
    },
    settle() {
      if (root.dataset.state === "running" && last() >= 0) {
        root.dataset.state = "stopped";
        show(follow ? rest() : shown, true);
      } else if (root.dataset.state === "running") root.dataset.state = "idle";
      else if (root.dataset.state === "waiting") root.dataset.state = run ? (run.done ? "done" : "stopped") : "idle";
      refresh();
      draw();
    },
    describe,
    hint(text) {
      hint = text;
      describe();
    },
    at: () => ({ picture, step: shown }),
  });

  find('[data-view="before"]').hidden = !props.before;
  if (props.again?.length) [find('[data-reuse="settings"]').textContent, find('[data-reuse="settings"]').title] = props.again;
  new ResizeObserver(resize).observe(element);
  stage.onTheme(draw);
  window.addEventListener("resize", resize);
  watch("value", receive);
  watch(["grid", "size", "total"], () => {
    if (run) return;
    [grid, size] = [props.grid, props.size];
    buildTicks();
    resize();
    refresh();
  });
  buildTicks();
  resize();
  refresh();
  receive();
}
