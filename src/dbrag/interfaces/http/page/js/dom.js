// Elements made of text. Nothing here, or anywhere on this page, parses HTML: names, values and
// messages come from databases and models, and are only ever set as text.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element.
 * @param {string} spec tag and classes: "p.faint"
 * @param {object} attributes text → attribute; functions → listeners ("onclick"); null → left out
 * @param {...(Node|string|null|Array)} children strings become text
 */
export function el(spec, attributes = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  return filled(document.createElement(tag), classes, attributes, children);
}

/** The same for SVG. */
export function svg(spec, attributes = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  return filled(document.createElementNS(SVG, tag), classes, attributes, children);
}

function filled(node, classes, attributes, children) {
  if (classes.length) node.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

export const id = (name) => document.getElementById(name);

export function button(text, onclick, attributes = {}) {
  return el("button", { type: "button", onclick, ...attributes }, text);
}

/** Foreign text whose direction is its own. */
export function foreign(text, spec = "bdi") {
  return el(spec, { dir: "auto" }, text);
}

/** Tell those who do not see the page. */
export function say(text) {
  const place = id("say");
  // The same text twice is only spoken when it was away in between.
  place.textContent = "";
  setTimeout(() => (place.textContent = text), 30);
}

export function count(number, noun) {
  const plural = noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}

/** A table's id as text. */
export function tableName(table) {
  return [table.source, table.schema, table.name].filter((part) => part !== null).join(".");
}

export function seconds(value) {
  if (value < 0.1) return `${Math.max(1, Math.round(1000 * value))} ms`;
  return value < 10 ? `${value.toFixed(1)} s` : `${Math.round(value)} s`;
}

// Where the server's hint names a command, the page has a place.
const HERE = {
  unknown_name: "the panel Tables lists all tables and columns",
  table_not_found: "the panel Tables lists all tables",
  unauthorized: "load this page again and type the token",
};

/** What is wrong and what to do, as a box; `otherwise` where the server knows no more. */
export function failureBox(error, otherwise = "") {
  const hint = HERE[error.code] || error.hint || otherwise;
  const wait = error.retryS ? ` (it may work in ${error.retryS} s)` : "";
  return el(
    "div.failure",
    {},
    el("p.failure-what", {}, el("strong", {}, "Not done: "), foreign(error.message)),
    hint || wait ? el("p", {}, el("strong", {}, "What to do: "), foreign(hint || "try again"), wait) : null,
  );
}
