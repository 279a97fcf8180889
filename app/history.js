/* Past pictures in this browser's storage, newest first, and settings from outside: the page's address, a dropped PNG.

   entry = { id, title, summary, link, settings, picture: "data:image/webp;..." }
   value = { fault } is the server's answer to settings that were brought. */
function mountHistory(element, trigger, props, watch) {
  const KEY = "pgm-image-history", TEXT_KEY = "pgm-image", LONGEST = 1e5;
  const root = element.querySelector(".history");
  const find = (selector) => root.querySelector(selector);
  const strip = find(".history-strip");
  let entries = read(), chosen = null, stored = true, followed = false;

  /* ---------- storage ---------- */
  function read() {
    try {
      const found = JSON.parse(localStorage.getItem(KEY) || "[]");
      return Array.isArray(found) ? found.filter((one) => one?.settings && /^data:image\//.test(one.picture)) : [];
    } catch {
      return [];
    }
  }

  function write() {
    entries = entries.slice(0, props.most);
    let text = JSON.stringify(entries);
    while (entries.length && text.length > props.room) {
      entries.pop();
      text = JSON.stringify(entries);
    }
    for (;;) {
      try {
        localStorage.setItem(KEY, text);
        stored = true;
        return;
      } catch {
        stored = false;  // storage is full or forbidden: this page still shows what it has
        if (entries.length < 2 || localStorage.getItem(KEY) === null) return;
        entries.pop();
        text = JSON.stringify(entries);
      }
    }
  }

  function add({ detail: { channel, value } }) {
    if (channel !== "image" || !value.links) return;
    const final = value.steps[value.steps.length - 1];
    const fresh = final.previews.map((picture, i) => ({
      id: `${value.run}-${i}`, title: value.title, summary: value.summary, link: value.links[i],
      settings: value.pictures[i], picture,
    }));
    const known = stored ? read() : entries;  // another tab of this browser may have added its own
    entries = [...fresh, ...known.filter((one) => !fresh.some((other) => other.link === one.link))];
    write();
    show();
  }

  /* ---------- what is seen ---------- */
  function show() {
    root.toggleAttribute("data-empty", !entries.length);
    if (!entries.some((one) => one.id === chosen)) chosen = null;
    find(".history-count").textContent = entries.length ? `${entries.length} of ${props.most}` : "";
    find(".history-words").textContent = !stored ? "This browser does not let the page keep pictures; they go when you leave."
      : entries.length ? "Kept in this browser only. Choose one to use it again."
      : "Pictures you make are kept here, in this browser only. Drop a PNG saved by this page anywhere to bring its settings back.";
    strip.replaceChildren(...entries.map((one, at) => {
      const button = Object.assign(document.createElement("button"), { type: "button", title: one.title });
      button.setAttribute("aria-label", `${one.title}, seed ${one.settings.seed}, ${at + 1} of ${entries.length}`);
      button.setAttribute("aria-pressed", one.id === chosen);
      button.append(Object.assign(new Image(), { src: one.picture, alt: "", loading: "lazy" }));
      button.addEventListener("click", () => {
        chosen = chosen === one.id ? null : one.id;
        strip.querySelectorAll("button").forEach((other, k) => other.setAttribute("aria-pressed", entries[k].id === chosen));
        about();
      });
      return button;
    }));
    about();
  }

  function about() {
    const one = entries.find((entry) => entry.id === chosen);
    find(".history-one").hidden = !one;
    find(".history-about b").textContent = one?.title ?? "";
    find(".history-about span").textContent = one ? `Seed ${one.settings.seed} · ${one.summary}` : "";
  }

  function bring(one, keepSeed, button) {
    trigger("bring", { settings: one.settings, keep_seed: keepSeed, fault: null });
    const words = button.dataset.words ||= button.textContent;
    button.textContent = "In the form";
    setTimeout(() => { button.textContent = words; }, 1500);
  }

  const actions = {
    again: (one, button) => bring(one, true, button),
    remix: (one, button) => bring(one, false, button),
    link: (one, button) => window.pgm?.copyLink(one.link, button),
    save: (one) => trigger("keep", { pictures: [{ settings: one.settings, picture: one.picture }] }),
    drop: (one) => {
      entries = entries.filter((other) => other !== one);
      write();
      show();
      (strip.querySelector("button") || find(".history-all")).focus();
    },
  };
  root.querySelectorAll("[data-past]").forEach((button) => button.addEventListener("click", () => {
    const one = entries.find((entry) => entry.id === chosen);
    if (one) actions[button.dataset.past](one, button);
  }));
  find(".history-all").addEventListener("click", () =>
    trigger("keep", { pictures: entries.map(({ settings, picture }) => ({ settings, picture })) }));
  find(".history-clear").addEventListener("click", (event) => {
    const button = event.currentTarget;
    if (button.dataset.sure === undefined) {
      button.dataset.sure = "";
      button.textContent = "Really clear?";
      setTimeout(() => { delete button.dataset.sure; button.textContent = "Clear"; }, 4000);
      return;
    }
    entries = [];
    write();
    show();
  });

  /* ---------- a PNG dropped on the page: read here, never sent ---------- */
  async function settingsOf(file) {
    const view = (from, to) => file.slice(from, to).arrayBuffer().then((part) => new DataView(part));
    const start = await view(0, 8);
    if (start.byteLength < 8 || start.getUint32(0) !== 0x89504e47) return null;
    for (let at = 8, chunks = 0; at + 8 <= file.size && chunks < 1000; chunks++) {
      const head = await view(at, at + 8);
      const length = head.getUint32(0), kind = String.fromCharCode(...new Uint8Array(head.buffer, 4, 4));
      if (kind === "IDAT" || kind === "IEND") return null;  // ours is written before the pixels
      if (kind === "tEXt" && length < LONGEST) {
        const text = await file.slice(at + 8, at + 8 + length).text();
        if (text.startsWith(`${TEXT_KEY}\0`)) return JSON.parse(text.slice(TEXT_KEY.length + 1));
      }
      at += 12 + length;
    }
    return null;
  }

  const page = document.documentElement;
  const brings = (event) => event.dataTransfer?.types?.includes("Files");
  const own = (event) => event.target.closest?.("input[type=file], [data-testid=file-upload], .image-container, [data-own-drop]");
  const onDrag = (event) => {
    if (!brings(event)) return;
    page.toggleAttribute("data-dropping", !own(event));
    if (!own(event)) event.preventDefault();
  };
  const onLeave = (event) => { if (!event.relatedTarget) page.removeAttribute("data-dropping"); };
  const onDrop = async (event) => {
    page.removeAttribute("data-dropping");
    if (!brings(event) || own(event)) return;
    event.preventDefault();
    let settings = null;
    try {
      settings = await settingsOf(event.dataTransfer.files[0]);
    } catch { /* not a PNG of ours */ }
    const usable = settings && typeof settings === "object";
    trigger("bring", usable ? { settings, keep_seed: true, fault: null } : { settings: null, keep_seed: true, fault: props.refusal });
  };
  window.addEventListener("dragover", onDrag);
  window.addEventListener("dragleave", onLeave);
  window.addEventListener("drop", onDrop);

  /* ---------- settings in the page's address ---------- */
  function follow() {
    const query = new URLSearchParams(location.search);
    const settings = Object.fromEntries(props.keys.filter((key) => query.has(key)).map((key) => [key, query.get(key).slice(0, 200)]));
    if (!Object.keys(settings).length) return;
    followed = true;
    trigger("bring", { settings, keep_seed: true, fault: null });
  }

  watch("value", () => {
    const fault = props.value?.fault;
    if (fault === undefined) return;
    const studio = [...document.querySelectorAll(".studio")].find((one) => one.offsetParent);
    window.pgm?.notice(studio?.id.replace("-studio", "") || "image", fault);
    if (followed && !fault) window.pgm?.hint("image", "These settings came with the link. Press Generate to see the picture.");
    followed = false;
  });
  window.addEventListener("pgm:done", add);
  window.addEventListener("pgm:bring", ({ detail }) => trigger("bring", { settings: detail, keep_seed: true, fault: null }));
  window.addEventListener("storage", (event) => {
    if (event.key !== KEY) return;
    entries = read();
    show();
  });
  const stage = document.getElementById("image-viewer");  // as wide as the stage above
  if (stage) new ResizeObserver(() => {
    root.style.setProperty("--stage", stage.querySelector(".viewer")?.style.getPropertyValue("--stage") || "100%");
  }).observe(stage);
  show();
  setTimeout(follow, 0);
}
