/* Draws one state of a reveal on a canvas: paper, known cells, grid lines, this step's cells.

   scene = { grid: [rows, columns], size: [width, height], shown: step, view: "picture" | "codes" | "order" | "before", lines,
             colour(name) -> CSS colour, total: steps, born: step of each cell (-1 unknown, -2 given) or null, codes: code of each
             cell, image: decoded preview of the step shown, font, hint: cells tinted while there is nothing to show,
             glow: null or { age: 0 (just arrived) to 1, fades: whether nothing of it is to stay } } */
function drawCells(target, scene) {
  const { grid: [rows, columns], size, view, colour, glow } = scene;
  const pen = target.getContext("2d"), density = window.devicePixelRatio || 1;
  const paper = colour("--paper"), rule = colour("--paper-line"), accent = colour("--accent"), ink = colour("--ink");
  const across = size[0] / columns, down = size[1] / rows;
  const at = (k, n, length) => Math.round((k * length) / n);
  const tones = [];
  smooth(pen, Math.max(...size), target.width);
  pen.fillStyle = paper;
  pen.fillRect(0, 0, target.width, target.height);
  pen.font = `500 ${Math.max(target.width / columns / 3.1, 5)}px ${scene.font}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";

  if (view === "before") {
    if (scene.image) pen.drawImage(scene.image, 0, 0, target.width, target.height);
    return;
  }
  for (let cell = 0; cell < rows * columns; cell++) {
    const row = Math.floor(cell / columns), column = cell % columns;
    const x = at(column, columns, target.width), y = at(row, rows, target.height);
    const w = at(column + 1, columns, target.width) - x, h = at(row + 1, rows, target.height) - y;
    const step = scene.born?.[cell] ?? -1;
    const given = step === -2, known = given || (step >= 0 && step <= scene.shown);
    if (known && !given && view === "order") {
      pen.fillStyle = tones[step] ||= orderTone(scene.total > 1 ? step / (scene.total - 1) : 0, colour);
      pen.fillRect(x, y, w, h);
    } else if (known && scene.image) {
      pen.globalAlpha = view === "codes" ? 0.22 : view === "order" ? 0.35 : 1;
      pen.drawImage(scene.image, column * across, row * down, across, down, x, y, w, h);
      pen.globalAlpha = 1;
    }
    if (!known && scene.hint.has(cell)) {
      pen.fillStyle = colour("--accent-soft");
      pen.fillRect(x, y, w, h);
    }
    if (scene.lines && (!known || view === "codes")) {
      pen.fillStyle = rule;
      pen.fillRect(x, y, w, density);
      pen.fillRect(x, y, density, h);
    }
    if (glow && known && step === scene.shown) {
      if (view !== "order") {
        pen.globalAlpha = glow.fades ? 0.9 * (1 - glow.age) : 0.9 - 0.62 * glow.age;
        pen.fillStyle = accent;
        pen.fillRect(x, y, w, h);
      }
      pen.globalAlpha = glow.fades ? 1 - glow.age : 1;
      pen.strokeStyle = view === "order" ? ink : accent;
      pen.lineWidth = 2 * density;
      if (pen.globalAlpha > 0) pen.strokeRect(x + density, y + density, w - 2 * density, h - 2 * density);
      pen.globalAlpha = 1;
    }
    if (known && view === "codes") {
      pen.fillStyle = ink;
      pen.fillText(scene.codes[cell], x + w / 2, y + h / 2 + density);
    }
  }
}

/* The colour of a cell that came in after a share `part` (0 to 1) of the steps. */
function orderTone(part, colour) {
  const stops = ["--order-first", "--order-early", "--order-late", "--order-last"].map(colour);
  const place = Math.min(Math.max(part, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return `color-mix(in oklab, ${stops[low + 1]} ${Math.round((place - low) * 100)}%, ${stops[low]})`;
}

/* The first cells of a Halton order, as a quiet hint of what is about to happen. */
function firstCells([rows, columns], count) {
  const corput = (k, base) => {
    let value = 0;
    for (let part = 1 / base; k > 0; k = Math.floor(k / base), part /= base) value += (k % base) * part;
    return value;
  };
  const cells = new Set();
  for (let k = 1; k <= count; k++) cells.add(Math.floor(corput(k, 2) * rows) * columns + Math.floor(corput(k, 3) * columns));
  return cells;
}

/* Pictures up to this size are pixel art: enlarged by whole device pixels, so every pixel stays a crisp square. Larger
   ones fill the room and are smoothed. */
const CRISP = 128;

function fitWhole(space, side) {
  const density = window.devicePixelRatio || 1, whole = Math.floor((space * density) / side);
  return whole >= 1 && side <= CRISP ? whole / density : space / side;
}

function smooth(pen, side, width) {
  pen.imageSmoothingEnabled = side > CRISP || width < side;
  pen.imageSmoothingQuality = "high";
}

function sizeCanvas(target, size, scale) {
  const density = window.devicePixelRatio || 1;
  [target.width, target.height] = size.map((side) => Math.round(side * scale * density));
  [target.style.width, target.style.height] = size.map((side) => `${side * scale}px`);
}

/* Makes a stage's canvas as large as the window has room for, `below` pixels of its height being for other things.
   Returns how wide what stands below it may be. */
function sizeStage(target, size, width, fit = fitWhole, below = 312) {
  const phone = window.matchMedia("(max-width: 767px)").matches;
  const room = phone ? width : Math.min(width, Math.max(384, Math.min(640, window.innerHeight - below)));
  const scale = fit(room, Math.max(...size));
  sizeCanvas(target, size, scale);
  return phone ? "100%" : `${Math.min(width, Math.max(size[0] * scale, 512))}px`;
}

/* The light in which this step's cells come in; `draw` is called for each of its frames. */
function mountGlow(draw) {
  const LASTS = 600, calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  let from = -LASTS, frame = 0;
  const past = () => performance.now() - from;
  function tick() {
    draw();
    if (past() < LASTS) frame = requestAnimationFrame(tick);
  }
  return {
    age: () => (calm.matches ? 1 : Math.min(past() / LASTS, 1)),  // 0 just lit, 1 gone
    set(bright) {
      cancelAnimationFrame(frame);
      from = bright && !calm.matches ? performance.now() : -LASTS;
      if (bright) frame = requestAnimationFrame(tick);
    },
  };
}
