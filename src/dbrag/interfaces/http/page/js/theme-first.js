// Before the first paint, so that nothing flashes: the chosen theme, else the system's.
(function () {
  let chosen = null;
  try {
    chosen = localStorage.getItem("dbrag-theme");
  } catch (_) {
    // storage may be switched off
  }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
