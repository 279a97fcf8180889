/* Models that are not on this machine: greyed in the model menu, with the reason under their title, and not to be chosen
   by mouse or by keyboard. Gradio's menu knows no disabled entries; it is rebuilt whenever it opens.

   props.absent = { title: reason } */
function mountModelPicker(props) {
  const absent = new Map(Object.entries(props.absent || {}));
  if (!absent.size) return;
  const MENU = "#image-model [role='option']";
  const reason = (option) => absent.get(option?.getAttribute("aria-label") ?? "");

  function mark() {
    for (const option of document.querySelectorAll(MENU)) {
      const why = reason(option);
      if (!why || option.dataset.absent === why) continue;
      option.dataset.absent = why;
      option.setAttribute("aria-disabled", "true");
      option.setAttribute("aria-description", why);
    }
  }

  const refuse = (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  for (const kind of ["pointerdown", "mousedown", "mouseup", "click"])
    window.addEventListener(kind, (event) => event.target.closest?.(`${MENU}[data-absent]`) && refuse(event), true);
  window.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.closest?.("#image-model") && document.querySelector(`${MENU}.active[data-absent]`)) refuse(event);
  }, true);

  function watch() {
    const picker = document.getElementById("image-model");
    if (!picker) return requestAnimationFrame(watch); // Gradio may make it after this one
    new MutationObserver(mark).observe(picker, { childList: true, subtree: true, characterData: true });
    mark();
  }
  watch();
}
