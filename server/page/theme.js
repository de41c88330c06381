// The colours: those of the system, or light or dark, as the switch says. Not a module: it runs before the first paint.
(() => {
  "use strict";
  const KEY = "tidemill.theme";
  const NAMES = { system: "Colours: system", light: "Colours: light", dark: "Colours: dark" };
  const root = document.documentElement;

  function stored() {
    try {
      const name = localStorage.getItem(KEY);
      return name in NAMES ? name : "system";
    } catch {
      return "system"; // a browser that keeps nothing
    }
  }

  function show(name) {
    root.dataset.theme = name;
    const button = document.getElementById("theme");
    if (button) button.textContent = NAMES[name];
  }

  function next() {
    const names = Object.keys(NAMES);
    const name = names[(names.indexOf(root.dataset.theme) + 1) % names.length];
    try {
      localStorage.setItem(KEY, name);
    } catch {
      // It holds until the page is loaded again.
    }
    show(name);
  }

  show(stored());
  addEventListener("DOMContentLoaded", () => {
    show(stored());
    document.getElementById("theme").addEventListener("click", next);
  });
})();
