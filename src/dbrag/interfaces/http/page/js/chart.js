// The chart that the server drew, as an image: a script in it could not run.

import { get } from "./api.js";
import { el, failureBox, foreign } from "./dom.js";
import { onTheme, theme } from "./theme.js";

const REDRAW = 60;
let current = null;
let timer = null;

onTheme(() => current?.load());
addEventListener("resize", () => {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (current && Math.abs(room() - current.width) > REDRAW) current.load();
  }, 250);
});

/** Pixels for the picture. */
function room() {
  return Math.max(240, Math.min(860, document.getElementById("main").clientWidth - 80));
}

/**
 * A section that fills itself; it stays hidden where no chart suits.
 * @param {string} resultId of a kept result
 */
export function chartSection(resultId) {
  const figure = el("figure.chart");
  const node = el("section.card", { "aria-label": "Chart", hidden: true }, figure);
  const chart = { width: 0 };
  chart.load = () => {
    chart.width = room();
    return load(resultId, node, figure, chart.width);
  };
  current = chart;
  chart.load();
  return node;
}

async function load(resultId, node, figure, width) {
  try {
    const drawn = await get(`/results/${resultId}/chart`, { theme: theme(), width });
    if (!drawn.svg) return;
    const source = `data:image/svg+xml;base64,${base64(drawn.svg)}`;
    const notes = [drawn.description, ...drawn.notes].join("; ");
    figure.replaceChildren(
      el("img", { src: source, alt: drawn.description, dir: "ltr" }),
      el("figcaption.faint", {}, foreign(notes)),
    );
    figure.dataset.kind = drawn.kind;
    node.hidden = false;
  } catch (error) {
    figure.replaceChildren(failureBox(error));
    node.hidden = false;
  }
}

function base64(text) {
  let bytes = "";
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return btoa(bytes);
}
