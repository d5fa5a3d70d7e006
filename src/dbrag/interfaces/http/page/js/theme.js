// Light and dark: as the system has it, until the switch is used.

const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = [];

export function theme() {
  return document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
}

/** Calls back when the theme has changed. */
export function onTheme(listener) {
  listeners.push(listener);
}

export function setUpTheme(button) {
  const show = () => {
    button.setAttribute("aria-pressed", String(theme() === "dark"));
    listeners.forEach((listener) => listener(theme()));
  };
  button.addEventListener("click", () => {
    const next = theme() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("dbrag-theme", next);
    } catch {
      // not kept, then
    }
    show();
  });
  dark.addEventListener("change", show);
  show();
}
