/* The life of a run as a stage sees it: asked for, waiting for its turn or for a model, coming in, stopped, settled.

   stage = { holds(value) -> whether this run is the one shown, waiting() -> whether it waits for one, wait() -> one has
             been asked for, settle() -> nothing more will come, describe() -> put words and numbers anew,
             and what page.js may ask of it besides } */
function mountRun(channel, stage) {
  let refused = false;
  const line = window.pgm.line(channel, () => stage.waiting() && stage.describe());

  function wait() {
    refused = false;
    line.watch();
    stage.wait();
    stage.describe();
  }

  function stop() {
    refused = true;
    stage.settle();
  }

  /* Whether a value is to be shown: neither a fault, nor a word on loading, nor of a run stopped before its first word. */
  function takes(value) {
    if (value?.error) {
      stage.settle();
      window.pgm.notice(channel, value.error);
      return false;
    }
    if (value?.loading) {
      line.say(value.loading);
      return false;
    }
    return Boolean(value?.run) && (stage.holds(value) || !refused);
  }

  window.pgm.register(channel, { ...stage, wait, stop });
  return { words: line.words, takes };
}
