/* Shows texts coming in: every step the server has sent is kept here, so scrubbing and playing ask the server nothing.

   value = { run, kind: "one" | "compare", title, summary, left_out: sentence, verdict, done,
             sides: [{ label, model, ends, latent, settings, count, seeds, labels, cells, given: [[cell, piece]], total,
                       later, steps: [{ round, taken_back: [[cell]], filled: [[cell]], pieces: [[[cell, piece]]], texts,
                       known, computed, masked, seconds }], done }] }
         | { run, error }
   A side is one model. The last `later` steps are second looks, which take tokens back, unknown then, and fill them
   again. `taken_back`, `filled`, `pieces`, `texts` and `known` have one entry per text; a cell is a token, and the
   piece null is an end of text. Steps only ever grow. */
function mountText(element, trigger, props, watch) {
  const stage = mountStage(element), { root, find, put } = stage, page = document.documentElement;
  const UNKNOWN = -1, GIVEN = -2;
  let run = null;       // the value shown, null before the first run
  let sides = [];       // per side: { which, texts, numbers if compared, taken: steps read so far }
  let shown = -1, view = "text", follow = true, told = "", width = 0;

  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const total = () => (run ? Math.max(...run.sides.map((side) => side.total)) : 0);
  const made = () => (run ? Math.max(...run.sides.map((side) => side.steps.length)) : 0);
  const last = () => made() - 1;
  const finished = () => ["done", "stopped"].includes(root.dataset.state);
  const whole = (step) => run.sides.every((side) => side.steps[step] && sum(side.steps[step].known) === side.cells * side.count);
  /* The step a stage comes to rest on: the last one, unless a run was stopped while tokens of whole texts were away. */
  function rest() {
    if (root.dataset.state !== "stopped" || whole(last())) return last();
    const before = Array.from({ length: made() }, (_, step) => step).findLast(whole);
    return before ?? last();
  }
  const record = (side) => side.steps[Math.min(shown, side.steps.length - 1)];
  const rate = (side, step) => (step.seconds > 0 ? (sum(step.known) - side.count * side.given.length) / step.seconds : 0);

  /* ---------- cells ---------- */
  /* A width in letters for a token nobody knows yet: about a word piece, and the same every time. */
  const girth = (cell) => 2 + ((cell * 7) % 5) * 0.6;

  function paper(cells, given) {
    const words = make("p", "text-words");
    words.dir = "auto";
    const spans = Array.from({ length: cells }, (_, cell) => {
      const span = make("span", "text-cell");
      span.style.setProperty("--girth", `${girth(cell)}ch`);
      return span;
    });
    spans.forEach((span) => paint(span, "unknown", ""));
    words.append(...spans);
    return { words, spans, arrivals: mountArrivals(cells, given.map(([cell]) => cell)), held: Array.from({ length: cells }, () => []) };
  }

  /* What stands in a cell: blank space stays outside of the part that is marked, so that marks follow words; between
     words of the visitor (not `first` of them) it is theirs too. */
  function paint(span, state, piece, first) {
    const key = `${state}|${view}|${piece}|${first}`;
    if (span.dataset.key === key) return;
    span.dataset.key = key;
    span.dataset.state = state;
    span.removeAttribute("aria-hidden");
    span.removeAttribute("title");
    const ink = make("b");
    if (["unknown", "ahead", "behind"].includes(state)) {
      span.setAttribute("aria-hidden", "true");
      span.replaceChildren(ink, "\u200b");
    } else if (state === "end") {
      ink.textContent = view === "tokens" ? "end" : "■";
      ink.setAttribute("aria-label", "end of text");
      ink.setAttribute("role", "img");
      span.replaceChildren(ink, "\u200b");
    } else if (view === "tokens") {
      ink.textContent = (piece || "·").replaceAll(" ", "␣").replaceAll("\n", "⏎");
      span.replaceChildren(ink, "\u200b");
    } else {
      const space = state === "given" && !first ? "" : piece.match(/^\s*/)[0];
      ink.textContent = piece.slice(space.length);
      span.replaceChildren(space, ink);
    }
  }

  function drawText(side, text) {
    const at = Math.min(shown, side.steps.length - 1), clean = finished() && shown === rest();
    const { born: came } = text.arrivals.at(at);
    const piece = text.held.map((entries) => entries.findLast(([step]) => step <= at)?.[1]);
    const known = came.map((step) => step !== UNKNOWN);
    const end = side.ends ? known.findIndex((is, cell) => is && piece[cell] === null) : -1;
    text.spans.forEach((span, cell) => {
      const born = came[cell], behind = end >= 0 && cell > end, fresh = known[cell] && born === at && !clean;
      const state = behind && view !== "tokens" ? (known[cell] ? "behind" : "ahead")
        : !known[cell] ? "unknown" : piece[cell] === null ? "end" : born === GIVEN ? "given" : "known";
      paint(span, state, piece[cell] ?? "", came[cell - 1] !== GIVEN);
      span.toggleAttribute("data-new", fresh);
      span.toggleAttribute("data-behind", behind);
      const ink = span.querySelector("b");
      if (view === "order" && known[cell] && born >= 0 && !behind) {
        const tone = toneOf(side.total > 1 ? born / (side.total - 1) : 0);
        Object.assign(ink.style, { backgroundColor: tone.paper, color: tone.ink });
      } else ink.removeAttribute("style");
      if (known[cell]) span.title = born === GIVEN ? "Yours" : `Step ${born + 1} of ${side.total}`;
    });
  }

  const draw = () => sides.forEach(({ which, texts }) => run && texts.forEach((text) => drawText(run.sides[which], text)));

  /* Colours of the order map: the ramp of the legend, with black or white ink, whichever reads better. */
  let stops = [];
  function readRamp() {
    const style = getComputedStyle(element);
    stops = ["first", "early", "late", "last"].map((name) =>
      style.getPropertyValue(`--order-${name}`).trim().match(/[0-9a-f]{2}/gi).map((pair) => parseInt(pair, 16)));
  }
  function toneOf(part) {
    const place = Math.min(Math.max(part, 0), 1) * (stops.length - 1), low = Math.min(Math.floor(place), stops.length - 2);
    const rgb = stops[low].map((value, k) => Math.round(value + (stops[low + 1][k] - value) * (place - low)));
    const [r, g, b] = rgb.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return { paper: `rgb(${rgb})`, ink: 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff" };
  }

  /* ---------- stage ---------- */
  function build() {
    const shape = run ? run.sides : (props.kinds[mode()] || [""]).map((label) => ({ label, count: 1, labels: [""], cells: props.cells, given: [] }));
    const compared = run ? run.kind === "compare" : mode() === "compare";
    root.dataset.kind = compared ? "compare" : "one";
    sides = shape.map((side, which) => {
      const column = make("section", "text-side");
      const numbers = compared ? mountSideNumbers({ computed: "Tokens computed", seconds: "Time", rate: "Tokens/s" }) : null;
      if (compared) {
        const head = make("h3", "", side.label);
        if (side.model) head.append(" ", make("small", "", side.model));
        column.append(head);
      }
      const texts = Array.from({ length: side.count }, (_, k) => {
        const text = paper(side.cells, side.given), frame = make("article", "text-one");
        frame.append(text.words);
        if (run && (side.count > 1 || side.latent)) frame.append(tools(side, which, k));
        column.append(frame);
        side.given.forEach(([cell, piece]) => text.held[cell].push([GIVEN, piece]));
        return text;
      });
      if (numbers) column.append(numbers.list);
      return { which, column, texts, numbers, taken: 0 };
    });
    find(".text-sides").replaceChildren(...sides.map((side) => side.column));
    run ? timeline.build(total(), Math.max(...run.sides.map((side) => side.later))) : timeline.build(props.total);
    reserve();
  }

  function tools(side, which, k) {
    const line = make("div", "text-tools");
    const button = (words, title, act) => {
      const one = Object.assign(make("button", "", words), { type: "button", title });
      one.addEventListener("click", act);
      line.append(one);
      return one;
    };
    line.append(make("span", "", side.labels[k]));
    if (side.count > 1) {
      const copier = button("Copy", "Copy this text", () => copy(textsAt(side)[k], copier));
      if (side.settings.walk_to === null) button("Keep seed", "Put this seed into the form and keep it", () => trigger("reuse", { what: "seed", side: which, text: k }));
    }
    if (side.latent && run.kind === "one" && side.count > 1) button("Keep z", "Generate more texts from the z of this one", () => trigger("keep", { text: k }));
    line.hidden = side.count < 2;
    return line;
  }

  /* Unknown cells take about the room of words, so the stage keeps what it had at first and nothing below it jumps. */
  function reserve() {
    const place = find(".text-sides"), before = width, height = parseFloat(place.style.minHeight) || 0;
    width = element.clientWidth;
    if (!width) return;
    if (made() && before) place.style.minHeight = `${(height * before) / width}px`;  // too late to measure
    else {
      place.style.minHeight = "";
      place.style.minHeight = `${place.offsetHeight}px`;
    }
  }

  const mode = () => page.dataset.text || "one";
  const textsAt = (side) => record(side)?.texts ?? [];
  const everything = () => run.sides.flatMap((side) => textsAt(side).map((text, k) =>
    (run.sides.length > 1 ? `${side.label}${side.count > 1 ? `, ${side.labels[k]}` : ""}\n` : "") + text)).join("\n\n");

  const copy = (text, button) => window.pgm.copy(text, button).then(describe);

  /* ---------- words and numbers ---------- */
  const NOTES = {
    text: "This step's words are marked, yours are underlined, blocks are not known yet. A square ends the text; dots are tokens behind it.",
    again: "the tokens that fit worst were taken back and are drawn anew. Blocks are not known again yet.",
    left: "Stopped in a second look: this is the whole text before it. The timeline shows what came after.",
    tokens: "Each box is one token: a word or a piece of one, as the model reads it. ␣ is a space.",
    order: "Dark came first, pale last. What you wrote is underlined.",
    late: "Dark came first, pale last: the palest were drawn anew in second looks. What you wrote is underlined.",
  };

  function describe() {
    const state = root.dataset.state, one = run?.sides[0], step = one && shown >= 0 ? record(one) : null;
    const look = secondLook(step, one?.settings.refine_rounds), clean = finished() && run && shown === rest();
    find(".viewer-note p").textContent = view !== "text" ? NOTES[look && view === "order" ? "late" : view] : clean && shown < last() ? NOTES.left
      : look && !clean ? `${look}: ${NOTES.again}` : NOTES.text;
    find(".viewer-ramp").hidden = view !== "order";
    const words = { idle: "No text yet", waiting: life.words() }[state];
    stage.title(words ?? run?.title ?? "", words ? "" : state === "stopped" ? `stopped at step ${made()} of ${total()}` : clean ? "" : look.toLowerCase());
    find(".viewer-empty").textContent = run || state === "waiting" ? "" : props.empty[mode()];
    const many = one?.count > 1;
    put("step", step ? number(shown + 1) : "–", step && `of ${number(total())}`);
    put("known", step ? number(sum(step.known)) : "–", `of ${number(one ? one.cells * one.count : props.cells)}`);
    put("computed", step ? number(step.computed) : "–", step ? `vs ${number(step.masked)} masked${many ? ", each" : ""}` : "vs a masked model");
    put("seconds", step ? clock(step.seconds) : "–", step && "s");
    put("rate", step && step.seconds > 0 ? number(Math.round(rate(one, step))) : "–");
    find(".viewer-numbers .viewer-meter i").style.width = step ? `${Math.min(100, (100 * step.computed) / Math.max(step.masked, 1))}%` : "0";
    const most = mostComputed(run?.sides ?? []);
    sides.forEach(({ which, numbers }) => {
      const side = run?.sides[which], now = side && shown >= 0 ? record(side) : null;
      numbers?.paint(now, most, now && now.seconds > 0 ? number(Math.round(rate(side, now))) : null);
    });
    const verdict = find(".compare-verdict");
    verdict.textContent = run?.verdict || "";
    if (run?.kind === "compare") verdict.append(make("small", "", `${run.left_out} Steps alternate, and each clock runs only during its own steps.`.trim()));
    else if (!run && mode() === "compare") verdict.textContent = props.left_out;
    find(".viewer-settings").textContent = run?.summary.replace("top-p", "top\u2011p") || "Settings, seed and downloads of your text will be here.";
    find(".viewer-after").inert = !(finished() && made());
    const copier = find(".text-copy");
    if (!copier.dataset.words) copier.textContent = run && (many || run.sides.length > 1) ? "Copy all" : "Copy text";
    find(".text-keep").hidden = !(run?.kind === "one" && one.latent && one.count === 1);
    find('[data-save="txt"]').textContent = !run || shown === last() ? "Save .txt" : `Save step ${shown + 1}`;
    stage.all(".text-tools").forEach((tools) => { tools.inert = !(finished() && made()); });
    timeline.paint(
      Array.from({ length: made() }, (_, k) => Math.max(...run.sides.map((side) => sum((side.steps[k]?.filled ?? []).map((cells) => cells.length))))),
      step ? `Step ${shown + 1} of ${total()}, ${look ? `${look}, ` : ""}${sum(step.known)} of ${one.cells * one.count} tokens known` : "Nothing to show yet",
    );
  }

  /* For those who do not see it: at every quarter, and what came out. */
  function announce() {
    const quarter = Math.floor((4 * made()) / Math.max(total(), 1));
    const key = `${run.run}|${root.dataset.state === "running" ? quarter : root.dataset.state}`;
    if (key === told || (root.dataset.state === "running" && quarter === 0)) return;
    told = key;
    const texts = run.sides.flatMap(textsAt), whole = texts.length === 1 ? `: ${texts[0].slice(0, 300)}` : `, ${texts.length} texts`;
    find(".text-live").textContent = root.dataset.state === "running" ? `Step ${made()} of ${total()}` : `${root.dataset.state === "done" ? "Finished" : "Stopped"}${whole}`;
  }

  /* ---------- moving through the steps ---------- */
  function show(step) {
    if (last() < 0) return;
    shown = Math.min(Math.max(step, 0), last());
    refresh();
  }

  function refresh() { draw(); describe(); }

  const timeline = mountTimeline(find(".viewer-timeline"), {
    last, shown: () => shown, show,
    steer(step) {
      show(step);
      follow = shown === last();
    },
  });

  stage.onView((name) => {
    view = root.dataset.view = name;
    refresh();
  });
  find(".text-copy").addEventListener("click", (event) => copy(everything(), event.currentTarget));
  find(".text-keep").addEventListener("click", () => trigger("keep", { text: 0 }));
  stage.all("[data-reuse]").forEach((button) => button.addEventListener("click", () =>
    trigger("reuse", { what: button.dataset.reuse, side: 0, text: 0 })));
  stage.onSave((kind) => trigger("save", { kind, step: Math.max(shown, 0) }));

  /* ---------- what arrives ---------- */
  function receive() {
    const value = props.value;
    if (!life.takes(value)) return;
    if (value.run !== run?.run) {
      timeline.pause();
      run = value;
      [shown, follow] = [-1, true];
      root.dataset.state = "running";
      build();
    }
    run = value;
    for (const side of sides) {
      const { steps } = run.sides[side.which];
      for (; side.taken < steps.length; side.taken++) {
        const step = steps[side.taken];
        side.texts.forEach((text, k) => {
          text.arrivals.add(step.taken_back[k], step.filled[k]);
          step.pieces[k].forEach(([cell, piece]) => text.held[cell].push([side.taken, piece]));
        });
      }
    }
    if (run.done) {
      root.dataset.state = "done";
      window.pgm.running("text", false);
    }
    if (follow) shown = rest();
    refresh();
    announce();
  }

  const life = mountRun("text", {
    holds: (value) => value.run === run?.run,
    waiting: () => root.dataset.state === "waiting",
    wait() {
      timeline.pause();
      root.dataset.state = "waiting";
    },
    settle() {
      if (root.dataset.state === "running") root.dataset.state = made() ? "stopped" : "idle";
      else if (root.dataset.state === "waiting") root.dataset.state = run && made() ? (run.done ? "done" : "stopped") : "idle";
      if (root.dataset.state === "idle") {
        run = null;
        build();
      } else {
        if (follow) shown = rest();
        announce();
      }
      refresh();
    },
    describe,
  });

  /* The empty stage has as many columns as there will be. */
  function switchMode() {
    if (run) return;
    build();
    refresh();
  }

  readRamp();
  new ResizeObserver(() => { if (element.clientWidth !== width) reserve(); }).observe(element);
  stage.onTheme(() => {
    readRamp();
    draw();
  });
  new MutationObserver(switchMode).observe(page, { attributes: true, attributeFilter: ["data-text"] });
  watch("value", receive);
  watch(["cells", "total", "kinds", "left_out"], switchMode);
  root.dataset.view = view;
  build();
  refresh();
  receive();
}
