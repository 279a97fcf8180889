/* The page's own script: joins the buttons of a tab with its viewer. A tab is known by its channel ("image", "text").

   pgm.start(channel)   the visitor pressed Generate
   pgm.stop(channel)    the visitor pressed Stop
   pgm.settle(channel)  the server has finished with the request, however it ended
   A viewer registers itself with pgm.register(channel, viewer). */
window.pgm ||= (() => {
  const viewers = new Map();
  const root = document.documentElement;

  function mark(channel, running) {
    const channels = new Set((root.dataset.running || "").split(" ").filter(Boolean));
    const held = document.activeElement?.closest?.(`#${channel}-generate, #${channel}-stop`);
    running ? channels.add(channel) : channels.delete(channel);
    root.dataset.running = [...channels].join(" ");
    if (held) document.getElementById(`${channel}-${running ? "stop" : "generate"}`)?.focus();
  }

  function notice(channel, sentence) {
    const line = document.getElementById(`${channel}-notice`);
    if (!line) return;
    line.textContent = sentence || "";
  }

  /* Copies a text; the button says for a moment how it went. */
  async function copy(text, button, said = "Copied") {
    const words = button.dataset.words ||= button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = said;
    } catch {
      button.textContent = "Copy blocked";
    }
    await new Promise((done) => setTimeout(done, 1200));
    button.textContent = words;
    delete button.dataset.words;
  }

  /* What a tab waits for. Gradio's tracker beside the button says "queue: 2/3" while a run has to wait for its turn, and
     holds an error if it is refused because the line is full or the server is gone; say() tells of anything else. */
  function line(channel, changed) {
    const place = () => document.getElementById(`${channel}-queue`);
    const observer = new MutationObserver(() => (place()?.querySelector(".error") ? window.pgm.settle(channel) : changed()));
    let said = "";
    return {
      watch() {
        said = "";
        if (place()) observer.observe(place(), { subtree: true, childList: true, characterData: true });
      },
      say(words) {
        said = words;
        changed();
      },
      words() {
        const found = place()?.textContent.match(/queue:\s*(\d+)\s*\/\s*(\d+)/);
        return said || (found ? `Waiting in line: place ${found[1]} of ${found[2]}` : "Getting ready");
      },
    };
  }

  return {
    copy,
    copyLink: (query, button) => copy(`${location.origin}${location.pathname}?${query}`, button, "Link copied"),
    line,
    register(channel, viewer) { viewers.set(channel, viewer); },
    notice,
    running: mark,
    hint: (channel, sentence) => viewers.get(channel)?.hint?.(sentence),  // what an empty stage says
    bring: (settings) => {  // into the form of the image tab
      document.querySelector('#image-button, button[role="tab"]')?.click();
      window.dispatchEvent(new CustomEvent("pgm:bring", { detail: settings }));
    },
    pictured() {},  // which class a tab has chosen, and
    drawnBy() {},   // which model draws: told to class_pictures.js where there are pictures
    painters: {},  // by channel: what a tab's painter can be asked, see painter.js
    at: (channel) => viewers.get(channel)?.at?.() ?? null,  // { picture, step } on that tab's stage
    start(channel) {
      notice(channel, "");
      mark(channel, true);
      viewers.get(channel)?.wait();
      window.pgm.painters[channel]?.pane("result");
      if (window.matchMedia("(max-width: 767px)").matches) {
        const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
        document.getElementById(`${channel}-stage`)?.scrollIntoView({ behavior: calm ? "auto" : "smooth" });
      }
    },
    stop(channel) {
      mark(channel, false);
      viewers.get(channel)?.stop();
    },
    settle(channel) {
      mark(channel, false);
      viewers.get(channel)?.settle();
    },
  };
})();
