/* Small pictures in the class menus, from a sheet that the model drew itself: beside the class that is chosen, and
   beside every class of the open menu. Gradio's fields stay as they are; style sheets read where to look.

   props = { model, sheets: { model: { address, classes: [name], columns } } } */
function mountClassPictures(props) {
  const MENUS = { image: "#image-class", edit: "#edit-class", compare: "#compare-class" };
  const SHOWN = 32;  // CSS pixels of a picture
  const page = document.documentElement;
  const chosen = {};  // by channel
  let sheet = null;

  /* Where a class is on the sheet, as a background position; null when it has no picture. */
  function place(name) {
    const words = String(name ?? "");
    const index = sheet ? sheet.classes.indexOf(sheet.classes.includes(words) ? words : words.replace(/^.*: /, "")) : -1;
    return index < 0 ? null : `${-SHOWN * (index % sheet.columns)}px ${-SHOWN * Math.floor(index / sheet.columns)}px`;
  }

  function show() {
    const pictured = Object.keys(MENUS).filter((channel) => place(chosen[channel]));
    pictured.forEach((channel) => page.style.setProperty(`--${channel}-class-at`, place(chosen[channel])));
    page.dataset.pictured = pictured.join(" ");
  }

  function mark(menu) {
    for (const option of menu.querySelectorAll('[role="option"]')) {
      const where = place(option.getAttribute("aria-label"));
      if ((option.dataset.picture ?? null) === where) continue;
      if (where) {
        option.dataset.picture = where;
        option.style.setProperty("--at", where);
      } else delete option.dataset.picture;
    }
  }

  function turn(model) {
    sheet = props.sheets[model] ?? null;
    if (sheet) {
      page.style.setProperty("--class-sheet", `url("${new URL(sheet.address, document.baseURI)}")`);
      page.style.setProperty("--class-sheet-width", `${SHOWN * sheet.columns}px`);
    }
    show();
  }

  window.pgm.pictured = (channel, name) => {
    chosen[channel] = name;
    show();
  };
  window.pgm.drawnBy = turn;
  turn(props.model);

  const waiting = new Set(Object.keys(MENUS));
  function watch() {  // Gradio makes a tab when it is first opened
    for (const channel of waiting) {
      const menu = document.querySelector(MENUS[channel]);
      if (!menu) continue;
      waiting.delete(channel);
      chosen[channel] ??= menu.querySelector("input")?.value;
      new MutationObserver(() => mark(menu)).observe(menu, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-label"] });
      show();
    }
    if (!waiting.size) observer.disconnect();
  }
  const observer = new MutationObserver(watch);
  observer.observe(document.body, { childList: true, subtree: true });
  watch();
}
