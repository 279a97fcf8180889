/* What the tokenizer sees. Everything but decoding and looking up similar entries happens here.

   value = { run, title, model, grid: [rows, columns], size: [width, height], codebook, codes: [code], palette: { code:
             colour }, original: "data:...", rebuilt: "data:...", psnr: dB or null, agreeing: number or null }
         | { error }
   props.looked = { code, entries: [{ code, swatch: "data:...", colour }] }   answer to "look"
   props.swapped = { rebuilt, psnr, token }                                   answer to "swap" */
function mountTokens(element, trigger, props, watch) {
  const AMPLIFIED = 8, CHANNEL = "tokens", VIEWS = ["original", "rebuilt", "difference", "codes"];
  const NAMES = { original: "Picture", rebuilt: "Rebuilt", difference: "Difference", codes: "Codes" };
  const NOTES = {
    original: "What went in: the central square, at the tokenizer's size.",
    rebuilt: "What comes back from the codes alone.",
    difference: `How far the two are apart, ${AMPLIFIED} times enlarged. Black is exact.`,
    codes: "One number per cell. Similar codes have similar colours.",
  };
  const stage = mountStage(element), { root, find, all, colour, put } = stage;
  const canvas = find(".viewer-canvas"), input = find(".tokens-number input"), whole = find(".tokens-all input");
  let value = null, codes = [], palette = {}, pictures = {}, difference = null;
  let view = "codes", pointed = -1, pinned = -1, entries = [], asked = 0, rebuilt = null;

  const grid = () => value?.grid || props.grid, size = () => value?.size || props.size;
  const focus = () => (pointed >= 0 ? pointed : pinned);
  const same = (cell) => codes.reduce((found, code, k) => (code === codes[cell] ? [...found, k] : found), []);
  const swaps = () => (value ? codes.filter((code, k) => code !== value.codes[k]).length : 0);

  /* ---------- drawing ---------- */
  function paint(target, which, marks) {
    const pen = target.getContext("2d"), [rows, columns] = grid(), [width, height] = size();
    const density = window.devicePixelRatio || 1;
    const at = (k, n, length) => Math.round((k * length) / n);
    const box = (cell) => {
      const row = Math.floor(cell / columns), column = cell % columns;
      const x = at(column, columns, target.width), y = at(row, rows, target.height);
      return [x, y, at(column + 1, columns, target.width) - x, at(row + 1, rows, target.height) - y];
    };
    pen.imageSmoothingEnabled = false;
    pen.fillStyle = colour("--paper");
    pen.fillRect(0, 0, target.width, target.height);
    const cell = focus(), alike = new Set(value && cell >= 0 ? same(cell) : []);
    const dimmed = (k) => marks && alike.size > 0 && !alike.has(k);
    const image = { original: pictures.original, rebuilt: pictures.rebuilt, difference }[which];
    if (value && which === "codes") {
      for (let k = 0; k < codes.length; k++) {
        pen.fillStyle = palette[codes[k]] || colour("--paper");
        pen.fillRect(...box(k));
      }
      if (marks && target.width / columns / density >= 22) {
        pen.font = `500 ${target.width / columns / 3}px ${getComputedStyle(find(".tokens-words")).fontFamily}`;
        pen.textAlign = "center";
        pen.textBaseline = "middle";
        for (let k = 0; k < codes.length; k++) {
          if (dimmed(k)) continue;
          const [x, y, w, h] = box(k), light = parseFloat((palette[codes[k]] || "").slice(6)) || 1;
          pen.fillStyle = light > 0.62 ? "#1d1e22" : "#ffffff";
          pen.fillText(codes[k], x + w / 2, y + h / 2 + density);
        }
      }
    } else if (value && image) pen.drawImage(image, 0, 0, width, height, 0, 0, target.width, target.height);
    if (!value) {
      pen.fillStyle = colour("--paper-line");
      for (let k = 0; k < columns; k++) pen.fillRect(at(k, columns, target.width), 0, density, target.height);
      for (let k = 0; k < rows; k++) pen.fillRect(0, at(k, rows, target.height), target.width, density);
    }
    if (!marks || !alike.size) return;
    pen.fillStyle = colour("--page");
    pen.globalAlpha = 0.62;
    for (let k = 0; k < codes.length; k++) if (dimmed(k)) pen.fillRect(...box(k));
    pen.globalAlpha = 1;
    pen.strokeStyle = colour("--accent");
    for (const k of alike) {
      const [x, y, w, h] = box(k), line = (k === cell ? 3 : 1.5) * density;
      pen.lineWidth = line;
      pen.strokeRect(x + line / 2, y + line / 2, w - line, h - line);
    }
  }

  function draw() {
    paint(canvas, view, true);
    all(".tokens-strip canvas").forEach((small) => paint(small, small.dataset.shows, false));
  }

  function fit(space, side) {
    const density = window.devicePixelRatio || 1, times = Math.floor((space * density) / side);
    return times >= 1 ? times / density : space / side;
  }

  function resize() {
    const width = find(".tokens-left").clientWidth;
    if (!width) return;
    sizeStage(canvas, size(), width, fit, 330);
    find(".tokens-left").style.setProperty("--stage", `${window.matchMedia("(max-width: 767px)").matches ? width : canvas.clientWidth || width}px`);
    const room = Math.min(128, ((canvas.clientWidth || width) - 36) / 4);
    all(".tokens-strip canvas").forEach((small) => sizeCanvas(small, size(), fit(room, Math.max(...size()))));
    draw();
  }

  /* The difference of two decoded pictures, amplified, as a canvas. */
  function compare() {
    if (!pictures.original?.complete || !pictures.rebuilt?.complete) return;
    const [width, height] = size();
    const pixels = (image) => {
      const sheet = Object.assign(document.createElement("canvas"), { width, height }), pen = sheet.getContext("2d");
      pen.drawImage(image, 0, 0);
      return pen.getImageData(0, 0, width, height);
    };
    const one = pixels(pictures.original), other = pixels(pictures.rebuilt);
    for (let k = 0; k < one.data.length; k++) {
      one.data[k] = k % 4 === 3 ? 255 : Math.min(255, AMPLIFIED * Math.abs(one.data[k] - other.data[k]));
    }
    difference = Object.assign(document.createElement("canvas"), { width, height });
    difference.getContext("2d").putImageData(one, 0, 0);
    draw();
  }

  function load(name, source) {
    const image = new Image();
    image.src = source;
    image.decode().then(() => { pictures[name] = image; compare(); }, () => {});
  }

  /* ---------- words ---------- */
  function describe() {
    const psnr = rebuilt?.psnr;
    put("psnr", !value ? "–" : psnr === null ? "Exact" : psnr.toFixed(1), value && psnr !== null ? "dB" : "");
    put("cells", grid().join(" × "));
    put("used", value ? number(new Set(codes).size) : "–", value ? `of ${number(value.codebook)}` : "");
    put("swapped", value ? number(swaps()) : "–");
    find(".viewer-title").textContent = root.dataset.state === "waiting" ? life.words() : value?.title ?? "No picture yet";
    find(".viewer-empty").textContent = value || root.dataset.state === "waiting" ? "" : props.empty;
    find("#tokens-help").textContent = NOTES[view];
    find(".tokens-agree").textContent = value?.agreeing == null ? ""
      : value.agreeing === codes.length ? `All ${number(codes.length)} codes are the ones the model had chosen.`
      : `${number(value.agreeing)} of ${number(codes.length)} codes are the ones the model had chosen; the tokenizer reads the others differently from the finished pixels.`;
    find(".tokens-reset").hidden = !swaps();
    aboutCell();
  }

  function aboutCell() {
    const cell = focus(), columns = grid()[1];
    const head = find(".tokens-cell h2"), words = find(".tokens-words");
    head.toggleAttribute("data-code", Boolean(value) && cell >= 0);
    find(".tokens-change").hidden = !value || pinned < 0;
    if (!value || cell < 0) {
      head.textContent = value ? "No cell chosen" : "Cells and codes";
      words.textContent = value ? "Point at a cell, or move with the arrow keys. Click or press Enter to change its code."
        : "The code under the pointer, and its likes, will be here.";
      canvas.setAttribute("aria-label", value ? "Grid of codes; arrow keys move from cell to cell" : "Empty grid of codes");
      return;
    }
    const others = same(cell).length - 1;
    head.textContent = `Code ${codes[cell]}`;
    words.textContent = `Row ${Math.floor(cell / columns) + 1}, column ${(cell % columns) + 1}. ` +
      (others === 0 ? "No other cell has this code." : others === 1 ? "One other cell has this code." : `${number(others)} other cells have this code.`) +
      (codes[cell] !== value.codes[cell] ? ` It was ${value.codes[cell]}.` : "");
    canvas.setAttribute("aria-label", `${head.textContent}. ${words.textContent}`);
    const count = pinned >= 0 ? same(pinned).length : 1;
    find(".tokens-all").hidden = count < 2;
    find(".tokens-all span").textContent = `in all ${number(count)} cells with this code`;
    input.max = value.codebook - 1;
  }

  function showEntries() {
    find(".tokens-entries").replaceChildren(...entries.map((entry, k) => {
      const button = Object.assign(document.createElement("button"), { type: "button" });
      button.setAttribute("aria-label", `${k ? "Swap in code" : "This code,"} ${entry.code}`);
      button.disabled = !k;
      const swatch = Object.assign(new Image(), { src: entry.swatch, alt: "" });
      button.append(swatch, make("span", "", entry.code));
      button.addEventListener("click", () => swap(entry.code, entry.colour));
      return button;
    }));
    find(".tokens-similar").hidden = !entries.length;
  }

  /* ---------- doing ---------- */
  function pin(cell) {
    pinned = cell;
    entries = [];
    showEntries();
    whole.checked = false;
    if (cell >= 0) {
      input.value = codes[cell];
      trigger("look", { model: value.model, code: codes[cell] });
    }
    aboutCell();
    draw();
  }

  function swap(code, tint) {
    if (!value || pinned < 0 || !Number.isInteger(code) || code < 0 || code >= value.codebook) {
      window.pgm.notice(CHANNEL, value ? `A code is a whole number from 0 to ${value.codebook - 1}.` : "");
      return;
    }
    window.pgm.notice(CHANNEL, "");
    const where = whole.checked ? same(pinned) : [pinned];
    for (const cell of where) codes[cell] = code;
    if (tint) palette[code] = tint;
    decode();
    pin(pinned);
  }

  function decode() {
    root.toggleAttribute("data-decoding", true);
    trigger("swap", { model: value.model, codes, original: value.original, token: `${value.run}-${++asked}` });
    if (view === "original" || view === "codes") look("rebuilt");
    describe();
    draw();
  }

  function look(which) {
    view = which;
    stage.press(view);
    all(".tokens-strip button").forEach((button) => button.setAttribute("aria-pressed", button.dataset.pick === view));
    describe();
    draw();
  }

  const cellAt = (event) => {
    const box = canvas.getBoundingClientRect(), [rows, columns] = grid();
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
    const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
    return row < 0 || column < 0 || row >= rows || column >= columns ? -1 : row * columns + column;
  };
  const point = (cell) => {
    if (!value || cell === pointed) return;
    pointed = cell;
    aboutCell();
    draw();
  };
  canvas.addEventListener("pointermove", (event) => event.pointerType !== "touch" && point(cellAt(event)));
  canvas.addEventListener("pointerleave", () => point(-1));
  canvas.addEventListener("click", (event) => {
    if (!value) return;
    const cell = cellAt(event);
    pin(cell === pinned ? -1 : cell);
  });
  canvas.addEventListener("blur", () => point(-1));
  canvas.addEventListener("keydown", (event) => {
    if (!value) return;
    const [rows, columns] = grid(), from = focus();
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    if (event.key in moves) point(from < 0 ? 0 : Math.min(Math.max(from + moves[event.key], 0), rows * columns - 1));
    else if (event.key === "Enter" || event.key === " ") pin(focus());
    else if (event.key === "Escape") { pointed = -1; pin(-1); }
    else return;
    event.preventDefault();
  });
  /* A picture dropped here is uploaded as if it had been chosen with the button. */
  root.addEventListener("dragover", (event) => {
    event.preventDefault();
    root.toggleAttribute("data-drop", true);
  });
  root.addEventListener("dragleave", () => root.removeAttribute("data-drop"));
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    root.removeAttribute("data-drop");
    const field = document.querySelector("#tokens-act input[type=file]");
    if (!field || !event.dataTransfer.files.length) return;
    field.files = event.dataTransfer.files;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });
  find(".tokens-number").addEventListener("submit", (event) => {
    event.preventDefault();
    swap(input.value === "" ? NaN : Number(input.value));
  });
  find(".tokens-reset").addEventListener("click", () => {
    codes = value.codes.slice();
    decode();
    pin(pinned);
  });
  stage.onView(look);
  find(".tokens-strip").replaceChildren(...VIEWS.map((which) => {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    button.dataset.pick = which;
    button.setAttribute("aria-pressed", which === view);
    const small = document.createElement("canvas");
    small.dataset.shows = which;
    button.append(small, make("span", "", NAMES[which]));
    button.addEventListener("click", () => look(which));
    return button;
  }));

  /* ---------- what arrives ---------- */
  function receive() {
    const fresh = props.value;
    if (!life.takes(fresh) || fresh.run === value?.run) return;
    value = fresh;
    codes = fresh.codes.slice();
    palette = { ...fresh.palette };
    [pictures, difference, pointed, pinned, entries, rebuilt] = [{}, null, -1, -1, [], fresh];
    settle();
    load("original", fresh.original);
    load("rebuilt", fresh.rebuilt);
    resize();
  }

  function settle() {
    root.dataset.state = value ? "done" : "idle";
    describe();
    draw();
    window.pgm.running(CHANNEL, false);
  }

  const life = mountRun(CHANNEL, {
    holds: (fresh) => fresh.run === value?.run,
    waiting: () => root.dataset.state === "waiting",
    wait() { root.dataset.state = "waiting"; },
    settle,
    describe,
  });
  watch("value", receive);
  watch("looked", () => {
    const found = props.looked;
    if (found?.error) window.pgm.notice(CHANNEL, found.error);
    if (!found?.entries || pinned < 0 || found.code !== codes[pinned]) return;
    entries = found.entries;
    palette[found.code] = entries[0].colour;
    showEntries();
    draw();
  });
  watch("swapped", () => {
    const found = props.swapped;
    if (!found || found.token !== `${value?.run}-${asked}`) return;  // an answer to an earlier swap
    root.removeAttribute("data-decoding");
    if (found.error) {
      window.pgm.notice(CHANNEL, found.error);
      return;
    }
    rebuilt = found;
    load("rebuilt", found.rebuilt);
    describe();
  });
  new ResizeObserver(resize).observe(element);
  stage.onTheme(draw);
  showEntries();
  resize();
  describe();
  receive();
}
