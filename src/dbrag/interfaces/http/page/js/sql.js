// SQL with colours: a small tokenizer, and an editor made of a text area over coloured text.

import { el } from "./dom.js";

const KEYWORDS = new Set(
  `all and any as asc asof between by case cast collate cross current date desc distinct else end
  escape except exists extract false fetch filter first following for from full glob group having
  ilike in inner intersect interval into is isnull join last lateral left like limit natural next
  not notnull null nulls offset on only or order outer over partition pivot preceding qualify range
  recursive regexp right row rows select similar some table then timestamp to true unbounded union
  unnest using values when where window with within`.split(/\s+/),
);

const TOKEN = new RegExp(
  [
    /(?<comment>--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))/,
    /(?<string>'(?:[^']|'')*(?:'|$))/,
    /(?<name>"(?:[^"]|"")*(?:"|$)|`(?:[^`]|``)*(?:`|$)|\[[^\]\n]*\])/,
    /(?<number>\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)/,
    /(?<word>[\p{L}_][\p{L}\p{N}_$]*)/,
  ]
    .map((part) => part.source)
    .join("|"),
  "gu",
);

/** Pieces of a statement: [{text, kind}], kind null for all that has no colour. */
export function pieces(sql) {
  const found = [];
  let end = 0;
  for (const match of sql.matchAll(TOKEN)) {
    if (match.index > end) found.push({ text: sql.slice(end, match.index), kind: null });
    end = match.index + match[0].length;
    found.push({ text: match[0], kind: kindOf(match.groups, sql.slice(end, end + 20)) });
  }
  if (end < sql.length) found.push({ text: sql.slice(end), kind: null });
  return found;
}

function kindOf(groups, after) {
  if (groups.word === undefined) {
    return Object.keys(groups).find((name) => groups[name] !== undefined);
  }
  if (KEYWORDS.has(groups.word.toLowerCase())) return "keyword";
  return /^\s*\(/.test(after) ? "function" : null;
}

/** The statement's text in coloured spans. */
export function coloured(sql) {
  return pieces(sql).map(({ text, kind }) => (kind ? el(`span.sql-${kind}`, {}, text) : text));
}

/** A statement that is only shown. */
export function sqlBlock(sql, label = "SQL") {
  const attributes = { tabindex: "0", role: "region", "aria-label": label, dir: "ltr" };
  return el("pre.sql", attributes, el("code", {}, coloured(sql)));
}

/**
 * An editor.
 * @param {string} sql what stands in it
 * @param {object} options label, describedby (an id), onrun (Ctrl+Enter)
 * @returns {{node, area, set}} set(sql) replaces the text
 */
export function sqlEditor(sql, { label, describedby, onrun }) {
  const behind = el("pre.sql", { "aria-hidden": "true", dir: "ltr" });
  const area = el("textarea", {
    "aria-label": label,
    "aria-describedby": describedby,
    dir: "ltr",
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    wrap: "soft",
    maxlength: "100000",
  });
  const show = () => {
    // The text area has one more line than its text when that ends with a break.
    behind.replaceChildren(...coloured(area.value), "\n");
  };
  const set = (text) => {
    area.value = text;
    show();
  };
  area.addEventListener("input", show);
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      onrun();
    }
  });
  set(sql);
  return { node: el("div.editor", {}, behind, area), area, set };
}
