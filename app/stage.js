/* What all stages share: elements by their selector, numbers in their places, colours, and buttons that choose. */
const number = (value) => value.toLocaleString("en");
const clock = (seconds) => seconds.toFixed(seconds < 10 ? 2 : 1);
const make = (tag, className, text) => Object.assign(document.createElement(tag), { className: className || "", textContent: text ?? "" });

function mountStage(element) {
  const root = element.querySelector(".viewer"), find = (selector) => root.querySelector(selector);
  const all = (selector) => root.querySelectorAll(selector);

  return {
    root, find, all,
    colour: (name) => getComputedStyle(element).getPropertyValue(name).trim(),
    put(name, value, rest) {
      const place = find(`[data-number="${name}"]`);
      place.textContent = value;
      if (rest) place.append(" ", make("span", "", rest));
    },
    /* What is shown and, behind it, how far it has come. A screen reader hears of it when it changes, not at every step. */
    title(words, state) {
      const place = find(".viewer-title"), key = `${words}|${state}`;
      if (place.dataset.key === key) return;
      place.dataset.key = key;
      place.replaceChildren(...(state ? [make("span", "", words), " ", make("small", "", state)] : [words]));
    },
    press(view) { all("[data-view]").forEach((button) => button.setAttribute("aria-pressed", button.dataset.view === view)); },
    onView(act) {
      all("[data-view]").forEach((button) => button.addEventListener("click", () => {
        this.press(button.dataset.view);
        act(button.dataset.view);
      }));
    },
    onGrid(act) {
      find(".viewer-grid").addEventListener("click", ({ currentTarget }) => {
        const on = currentTarget.getAttribute("aria-pressed") !== "true";
        currentTarget.setAttribute("aria-pressed", on);
        act(on);
      });
    },
    onSave(act) { all("[data-save]").forEach((button) => button.addEventListener("click", () => act(button.dataset.save))); },
    onTheme(act) { new MutationObserver(act).observe(document.body, { attributes: true, attributeFilter: ["class"] }); },
  };
}

/* The numbers below one of several sides. names = { computed, seconds, rate }: what each is called. */
function mountSideNumbers(names) {
  const list = make("dl", "compare-numbers"), places = {};
  for (const [name, words] of Object.entries(names)) {
    const cell = make("div");
    places[name] = make("dd", "", "–");
    cell.append(make("dt", "", words), places[name]);
    if (name === "computed") {
      const meter = make("div", "viewer-meter");
      meter.setAttribute("aria-hidden", "true");
      meter.append(places.meter = make("i"));
      cell.append(meter);
    }
    list.append(cell);
  }
  /* step: the record shown, if any; most: what the costliest side computes in the end; rate: as it is to be read. */
  function paint(step, most, rate) {
    places.computed.textContent = step ? number(step.computed) : "–";
    places.meter.style.width = step ? `${(100 * step.computed) / most}%` : "0";
    places.seconds.textContent = step ? `${clock(step.seconds)} s` : "–";
    places.rate.textContent = rate ?? "–";
  }
  return { list, paint };
}

/* What the costliest side has computed up to the last step there is. */
const mostComputed = (sides) => Math.max(1, ...sides.map((side) => side.steps.at(-1)?.computed ?? 0));
