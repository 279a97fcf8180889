/* When each cell of a picture or text came in, at any step of a reveal. A cell can be taken back, which makes it unknown
   again, and be filled once more: what came last counts.

   given: cells known from the start, with their values if there are any.
   add(takenBack, filled, values)  what the next step did
   at(step) -> { born: the step at which a cell came in (-1 unknown, -2 given), held: its value } */
function mountArrivals(length, given = [], values = []) {
  const UNKNOWN = -1, GIVEN = -2, steps = [];
  let state = null;  // of the step asked for last

  function begin() {
    state = { step: -1, born: new Array(length).fill(UNKNOWN), held: new Array(length).fill(null) };
    given.forEach((cell, k) => {
      state.born[cell] = GIVEN;
      state.held[cell] = values[k];
    });
  }

  function advance() {
    const { takenBack, filled, values } = steps[++state.step];
    takenBack.forEach((cell) => { state.born[cell] = UNKNOWN; });
    filled.forEach((cell, k) => {
      state.born[cell] = state.step;
      state.held[cell] = values[k];
    });
  }

  return {
    add(takenBack, filled, values = []) { steps.push({ takenBack, filled, values }); },
    at(step) {
      if (!state || step < state.step) begin();
      while (state.step < Math.min(step, steps.length - 1)) advance();
      return state;
    },
  };
}

/* "Second look 2 of 4" for a step of that round, nothing for one of the first draw. */
const secondLook = (step, rounds) => (step?.round ? `Second look ${step.round} of ${rounds}` : "");
