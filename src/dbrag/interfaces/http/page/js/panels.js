// The panels at the sides, and the one dialog.

import { button, el, id } from "./dom.js";

const narrow = matchMedia("(max-width: 60rem)");

// On a phone an open panel covers the page: what is behind it cannot be reached, by keys neither.
function cover() {
  const covered = narrow.matches && document.querySelector(".panel:not([hidden])") !== null;
  for (const part of [id("main"), document.querySelector(".top")]) part.inert = covered;
}

narrow.addEventListener("change", cover);

/** A button that opens and closes a panel; onopen() fills it. */
export function setUpPanel(name, onopen) {
  const panel = id(name);
  const opener = id(`open-${name}`);
  const set = (open) => {
    panel.hidden = !open;
    opener.setAttribute("aria-expanded", String(open));
    cover();
    if (open) {
      onopen();
      id(`${name}-title`).focus();
    } else opener.focus();
  };
  opener.addEventListener("click", () => {
    // There is room for one on each side, and for one at all on a phone.
    if (panel.hidden) {
      for (const other of document.querySelectorAll(".panel:not([hidden])")) {
        if (narrow.matches || other.dataset.side === panel.dataset.side) closePanel(other.id, false);
      }
    }
    set(panel.hidden);
  });
  panel.querySelector("[data-close]").addEventListener("click", () => set(false));
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") set(false);
  });
}

export function closePanel(name, focus = true) {
  id(name).hidden = true;
  cover();
  id(`open-${name}`).setAttribute("aria-expanded", "false");
  if (focus) id(`open-${name}`).focus();
}

/** On a phone a panel hides the page: it goes when something in it was chosen. */
export function closeIfNarrow(name) {
  if (narrow.matches) closePanel(name, false);
}

/** Ask yes or no. */
export function confirmed(title, text, yes) {
  return shown(title, [el("p", {}, text)], yes, () => true);
}

/** Ask for the token that the server wants; null when none is given. */
export function askToken(wrong) {
  const input = el("input", {
    type: "password", id: "token", autocomplete: "off", "aria-describedby": "token-help",
  });
  const help = "The one that dbrag serve was started with (DBRAG_API_TOKEN or --token-file). " +
    "It is kept until this tab is closed.";
  const body = [
    wrong ? el("p.failure", { role: "alert" }, "This token is wrong.") : null,
    el("label", { for: "token" }, "Token"),
    input,
    el("p.faint", { id: "token-help" }, help),
  ];
  return shown("This server asks for a token", body, "Go on", () => input.value.trim() || null);
}

let open = Promise.resolve();

function shown(title, body, yes, value) {
  const next = open.then(() => showOne(title, body, yes, value));
  open = next;
  return next;
}

function showOne(title, body, yes, value) {
  const dialog = id("dialog");
  return new Promise((resolve) => {
    const form = el(
      "form",
      { method: "dialog" },
      el("h2", { id: "dialog-title" }, title),
      body,
      el("div.tools", {}, el("button.main-button", { value: "yes" }, yes), button("Cancel", () => dialog.close("no"))),
    );
    dialog.replaceChildren(form);
    dialog.returnValue = "";
    dialog.addEventListener(
      "close",
      () => resolve(dialog.returnValue === "yes" ? value() : null),
      { once: true },
    );
    dialog.showModal();
  });
}
