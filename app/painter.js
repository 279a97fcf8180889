/* Where a visitor paints on a picture. The brush marks whole cells, since a code is the smallest thing that can change.

   value = { token, picture: "data:...", size: [width, height], grid: [rows, columns], title,
             box: [left, top, right, bottom] of the picture in the square as shares, cells: [index] painted already }
   window.pgm.painters[channel] offers:
     painted()             { token, cells }: what the server is told
     mode(name)            "repaint" | "swap" | "outpaint" | "variation"
     strength(share)       of a variation
     move(right, down, scale)  of an outpaint
     pane("source" | "result") which of painter and viewer is on the stage */
function mountPainter(element, props, watch) {
  const root = element.querySelector(".painter"), find = (selector) => root.querySelector(selector);
  const canvas = find(".viewer-canvas"), channel = props.channel;
  const stage = document.getElementById(`${channel}-stage`), studio = document.getElementById(`${channel}-studio`);
  let value = null, image = null, grid = props.grid, size = props.size, box = [0, 0, 1, 1];
  let cells = new Set(), past = [], tool = "paint", mode = "repaint", strength = props.strength;
  let right = 0, down = 0, scale = 1, brush = 3, pointer = null, stroke = null, cursor = null;

  const colour = (name) => getComputedStyle(element).getPropertyValue(name).trim();
  const paints = () => image && (mode === "repaint" || mode === "swap");

  /* ---------- which cells ---------- */
  function shown(cell) {
    const row = Math.floor(cell / grid[1]), column = cell % grid[1], hair = 1e-9;
    return (column + 1) / grid[1] > box[0] + hair && column / grid[1] < box[2] - hair
      && (row + 1) / grid[0] > box[1] + hair && row / grid[0] < box[3] - hair;
  }
  const all = () => Array.from({ length: grid[0] * grid[1] }, (_, cell) => cell).filter(shown);

  /* The moved picture in the square, as shares; what it leaves open is to be filled. */
  function moved() {
    const wide = box[2] - box[0], high = box[3] - box[1];
    const left = box[0] + ((1 - scale) / 2 + right) * wide, top = box[1] + ((1 - scale) / 2 + down) * high;
    return [left, top, left + scale * wide, top + scale * high];
  }
  function open(cell) {
    const [left, top, far, low] = moved(), row = Math.floor(cell / grid[1]), column = cell % grid[1];
    const half = 0.5 / Math.max(...(value?.size || size));  // half a pixel: the server counts pixel centres
    const inside = (low_, high_, from, to, first, last) =>
      Math.max(low_, first) >= from - half && Math.min(high_, last) <= to + half;
    return !(inside(column / grid[1], (column + 1) / grid[1], left, far, box[0], box[2])
      && inside(row / grid[0], (row + 1) / grid[0], top, low, box[1], box[3]));
  }
  function redrawn() {
    if (mode === "swap") return cells.size ? all().filter((cell) => !cells.has(cell)) : [];
    if (mode === "outpaint") return all().filter(open);
    return mode === "repaint" ? [...cells] : [];
  }

  /* ---------- drawing ---------- */
  function draw() {
    const pen = canvas.getContext("2d"), density = window.devicePixelRatio || 1;
    const { width, height } = canvas, at = (k, n, length) => Math.round((k * length) / n);
    smooth(pen, Math.max(...size), width);
    pen.fillStyle = image ? "#fff" : colour("--paper");
    pen.fillRect(0, 0, width, height);
    if (image && mode === "outpaint") {
      const source = [box[0] * image.naturalWidth, box[1] * image.naturalHeight, (box[2] - box[0]) * image.naturalWidth, (box[3] - box[1]) * image.naturalHeight];
      const [left, top, far, low] = moved();
      pen.save();
      pen.beginPath();
      pen.rect(box[0] * width, box[1] * height, (box[2] - box[0]) * width, (box[3] - box[1]) * height);
      pen.clip();
      pen.drawImage(image, ...source, left * width, top * height, (far - left) * width, (low - top) * height);
      pen.restore();
    } else if (image) pen.drawImage(image, 0, 0, width, height);
    const hint = image ? null : firstCells(grid, Math.round((grid[0] * grid[1]) / 9));
    const marked = new Set(image ? redrawn() : []);
    for (let cell = 0; cell < grid[0] * grid[1]; cell++) {
      const row = Math.floor(cell / grid[1]), column = cell % grid[1];
      const x = at(column, grid[1], width), y = at(row, grid[0], height);
      const w = at(column + 1, grid[1], width) - x, h = at(row + 1, grid[0], height) - y;
      if (hint) {
        pen.fillStyle = colour("--accent-soft");
        if (hint.has(cell)) pen.fillRect(x, y, w, h);
        pen.fillStyle = colour("--paper-line");
        pen.fillRect(x, y, w, density);
        pen.fillRect(x, y, density, h);
      } else if (marked.has(cell)) {
        pen.globalAlpha = mode === "outpaint" ? 0.3 : 0.55;
        pen.fillStyle = "#5546e8";  // lies on the picture, not on the page: the same in the dark
        pen.fillRect(x, y, w, h);
        pen.globalAlpha = 0.9;
        pen.lineWidth = density;
        pen.strokeStyle = "#fff";
        pen.strokeRect(x + density / 2, y + density / 2, w - density, h - density);
        pen.globalAlpha = 1;
      }
    }
    const ring = (x, y, w, h, round) => {  // light on dark and dark on light: seen on any picture
      for (const [line, tone] of [[3, "#fff"], [1.5, "#1d1e22"]]) {
        pen.lineWidth = line * density;
        pen.strokeStyle = tone;
        pen.beginPath();
        round ? pen.ellipse(x, y, w, h, 0, 0, 2 * Math.PI) : pen.rect(x, y, w, h);
        pen.stroke();
      }
    };
    if (paints() && pointer) ring((pointer[0] * width) / grid[1], (pointer[1] * height) / grid[0], (radius() * width) / grid[1], (radius() * height) / grid[0], true);
    if (paints() && cursor !== null && document.activeElement === canvas) {
      ring(at(cursor % grid[1], grid[1], width), at(Math.floor(cursor / grid[1]), grid[0], height), width / grid[1], height / grid[0], false);
    }
  }

  function resize() {
    const width = element.clientWidth;
    if (!width) return;
    const room = sizeStage(canvas, size, width);
    root.style.setProperty("--stage", room);
    stage?.style.setProperty("--stage", room);
    draw();
  }

  /* ---------- words ---------- */
  const TITLES = { outpaint: "Move the picture", variation: "Vary the whole picture" };
  function describe() {
    const total = grid[0] * grid[1], count = redrawn().length, note = find(".viewer-note p");
    find(".viewer-title").textContent = image ? TITLES[mode] || "" : "No picture yet";
    find(".viewer-empty").textContent = image ? "" : props.empty;
    const some = `${count} of ${total} codes`;
    note.textContent = !image ? ""
      : mode === "variation" ? `About ${Math.round(strength * total)} of ${total} codes will be drawn anew, others for every result.`
      : mode === "outpaint" ? (count ? `${some} lie open and will be filled.` : "Shift or shrink the picture with the sliders; the room that opens is filled.")
      : count ? `${some} will be drawn anew; the rest stays as it is.`
      : mode === "swap" ? "Paint what should stay; everything else is drawn anew as the class you choose."
      : "Paint what should change. A code is drawn anew when the brush touches its cell.";
    find('[data-do="undo"]').disabled = !past.length;
    root.dataset.state = image ? "ready" : "empty";
    root.dataset.mode = mode;
    if (studio) studio.dataset.mode = mode;
    root.querySelectorAll("[data-tool]").forEach((button) => button.setAttribute("aria-pressed", button.dataset.tool === tool));
  }
  const refresh = () => { describe(); draw(); };

  /* ---------- painting ---------- */
  const radius = () => brush / 2 - 0.2;  // in cells
  const place = (event) => {
    const bounds = canvas.getBoundingClientRect();
    return [((event.clientX - bounds.left) / bounds.width) * grid[1], ((event.clientY - bounds.top) / bounds.height) * grid[0]];
  };
  function dab([x, y]) {
    const reach = radius();
    for (let row = Math.max(0, Math.floor(y - reach)); row <= Math.min(grid[0] - 1, Math.floor(y + reach)); row++) {
      for (let column = Math.max(0, Math.floor(x - reach)); column <= Math.min(grid[1] - 1, Math.floor(x + reach)); column++) {
        const dx = x - Math.min(Math.max(x, column), column + 1), dy = y - Math.min(Math.max(y, row), row + 1);
        const cell = row * grid[1] + column;
        if (dx * dx + dy * dy > reach * reach || !shown(cell)) continue;
        tool === "paint" ? cells.add(cell) : cells.delete(cell);
      }
    }
  }
  function remember() {
    past.push(new Set(cells));
    if (past.length > 50) past.shift();
  }
  canvas.addEventListener("pointerdown", (event) => {
    if (!paints() || event.button) return;
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
    remember();
    cursor = null;
    stroke = pointer = place(event);
    dab(stroke);
    refresh();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!paints()) return;
    pointer = place(event);
    if (stroke) {
      const steps = Math.ceil(Math.hypot(pointer[0] - stroke[0], pointer[1] - stroke[1]) * 4) || 1;
      for (let k = 1; k <= steps; k++) dab([0, 1].map((way) => stroke[way] + ((pointer[way] - stroke[way]) * k) / steps));
      stroke = pointer;
      refresh();
    } else draw();
  });
  const lift = () => { stroke = null; };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => { pointer = null; draw(); });
  canvas.addEventListener("focus", draw);
  canvas.addEventListener("blur", draw);
  canvas.addEventListener("keydown", (event) => {
    const ways = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (!paints()) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "z") return act.undo();
    if (!(event.key in ways) && event.key !== " ") return;
    event.preventDefault();
    const here = cursor ?? all()[0] ?? 0;
    if (event.key === " ") {
      remember();
      cells.has(here) ? cells.delete(here) : shown(here) && cells.add(here);
      cursor = here;
    } else if (cursor === null) cursor = here;
    else {
      const row = Math.min(Math.max(Math.floor(here / grid[1]) + ways[event.key][0], 0), grid[0] - 1);
      cursor = row * grid[1] + Math.min(Math.max((here % grid[1]) + ways[event.key][1], 0), grid[1] - 1);
    }
    refresh();
    const [row, column] = [Math.floor(cursor / grid[1]) + 1, (cursor % grid[1]) + 1];
    find(".viewer-note p").textContent = `Row ${row}, column ${column}: ${cells.has(cursor) ? "painted" : "not painted"}. ${redrawn().length} codes will be drawn anew.`;
  });

  const act = {
    undo() { if (past.length) cells = past.pop(); refresh(); },
    invert() { remember(); cells = new Set(all().filter((cell) => !cells.has(cell))); refresh(); },
    clear() { if (cells.size) remember(); cells = new Set(); refresh(); },
  };
  root.querySelectorAll("[data-do]").forEach((button) => button.addEventListener("click", () => act[button.dataset.do]()));
  root.querySelectorAll("[data-tool]").forEach((button) => button.addEventListener("click", () => { tool = button.dataset.tool; refresh(); }));
  find(".painter-size input").addEventListener("input", (event) => { brush = Number(event.target.value); draw(); });

  /* ---------- a picture dropped on the stage goes the way of the upload button ---------- */
  stage?.addEventListener("dragover", (event) => event.preventDefault());
  stage?.addEventListener("drop", (event) => {
    const input = document.querySelector(`#${channel}-upload input[type=file], input#${channel}-upload`)
      ?? document.getElementById(`${channel}-upload`)?.parentElement?.querySelector("input[type=file]");
    if (!event.dataTransfer?.files.length || !input) return;
    event.preventDefault();
    event.stopPropagation();
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });

  /* ---------- which pane ---------- */
  function pane(which) {
    if (stage) stage.dataset.pane = which;
    stage?.querySelectorAll("[data-pane-of]").forEach((button) => button.setAttribute("aria-pressed", button.dataset.paneOf === which));
    resize();
  }
  stage?.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-pane-of]");
    if (button) pane(button.dataset.paneOf);
  });

  function receive() {
    if (!props.value?.token || props.value.token === value?.token) return;
    const before = value;
    value = props.value;
    if (value.error) {
      const fault = value.error;
      value = before;
      window.pgm?.notice(channel, fault);
      return;
    }
    window.pgm?.notice(channel, "");
    if (value.picture !== before?.picture) past = [];
    else remember();
    [grid, size, box, cells] = [value.grid, value.size, value.box, new Set(value.cells || [])];
    cursor = null;
    image = Object.assign(new Image(), { onload: () => { resize(); refresh(); } });
    image.src = value.picture;
    pane("source");
  }

  if (window.pgm) {
    window.pgm.painters[channel] = {
      painted: () => ({ token: value?.token ?? null, cells: [...cells].sort((a, b) => a - b) }),
      mode(name) { mode = name; pane("source"); refresh(); },
      strength(share) { strength = share; pane("source"); refresh(); },
      move(...how) { [right, down, scale] = how; pane("source"); refresh(); },
      pane,
    };
  }
  new ResizeObserver(resize).observe(element);
  new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  window.addEventListener("resize", resize);
  watch("value", receive);
  pane("source");
  refresh();
  receive();
}
