/* The timeline below a stage: one tick per step, a play button, keyboard and drag. It knows numbers, not pictures.

   moves = { last() -> index of the last step there is (-1 for none), shown() -> index of the step shown,
             show(step, glow), steer(step) -> called when the visitor chose a step } */
function mountTimeline(root, moves) {
  const play = root.querySelector(".viewer-play"), ticks = root.querySelector(".viewer-ticks");
  const state = root.closest(".viewer");
  let player = 0;

  /* later: how many of the steps, the last ones, belong to second looks; a line stands before them. */
  function build(total, later = 0) {
    ticks.replaceChildren(...Array.from({ length: total }, () => document.createElement("i")));
    if (later && later < total) ticks.children[total - later].toggleAttribute("data-later", true);
    ticks.setAttribute("aria-valuemax", total);
  }

  /* heights: one number per step there is; words: what a screen reader says of the step shown. */
  function paint(heights, words) {
    const most = Math.max(1, ...heights), shown = moves.shown();
    Array.from(ticks.children).forEach((tick, k) => {
      tick.style.setProperty("--tall", k < heights.length ? heights[k] / most : 0);
      tick.toggleAttribute("data-made", k < heights.length);
      tick.toggleAttribute("data-past", k < heights.length && k <= shown);
      tick.toggleAttribute("data-now", k < heights.length && k === shown);
    });
    ticks.setAttribute("aria-disabled", moves.last() < 0);
    ticks.setAttribute("aria-valuenow", Math.max(shown + 1, 1));
    ticks.setAttribute("aria-valuetext", words);
    play.disabled = moves.last() < 1;
  }

  function pause() {
    clearTimeout(player);
    delete state.dataset.playing;
    play.setAttribute("aria-label", "Play the reveal");
  }

  function start() {
    state.dataset.playing = "";
    play.setAttribute("aria-label", "Pause");
    if (moves.shown() === moves.last()) moves.show(0, true);
    const pace = Math.min(Math.max(4000 / Math.max(moves.last(), 1), 50), 220);
    const next = () => {
      moves.show(moves.shown() + 1, true);
      if (moves.shown() < moves.last()) player = setTimeout(next, pace);
      else pause();
    };
    player = setTimeout(next, pace);
  }

  function steer(step) {
    pause();
    moves.steer(Math.min(Math.max(step, 0), moves.last()));
  }

  const pointed = (event) => {
    const box = ticks.getBoundingClientRect();
    return Math.floor(((event.clientX - box.left) / box.width) * ticks.children.length);
  };
  play.addEventListener("click", () => ("playing" in state.dataset ? pause() : start()));
  ticks.addEventListener("keydown", (event) => {
    const jump = Math.max(1, Math.round(moves.last() / 8));
    const keys = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -jump, PageUp: jump, Home: -Infinity, End: Infinity };
    if (!(event.key in keys) || moves.last() < 0) return;
    event.preventDefault();
    steer(moves.shown() + keys[event.key]);
  });
  ticks.addEventListener("pointerdown", (event) => {
    if (moves.last() < 0) return;
    ticks.setPointerCapture(event.pointerId);
    steer(pointed(event));
  });
  ticks.addEventListener("pointermove", (event) => ticks.hasPointerCapture(event.pointerId) && steer(pointed(event)));
  return { build, paint, pause };
}
