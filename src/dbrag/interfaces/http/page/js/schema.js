// The schema browser: all tables, found by their names and columns, opened one by one.

import { get } from "./api.js";
import { button, count, el, failureBox, foreign, id, say } from "./dom.js";
import { isWord, plain } from "./table.js";

const PAGE = 1000;
const MOST = 5000;
const SHOWN = 200;

let tables = null;
let total = 0;
let choose = () => {};

/** @param {(table) => void} onchoose "ask about it" was pressed */
export function setUpSchema(onchoose) {
  choose = onchoose;
  let timer = null;
  id("table-search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(draw, 120);
  });
}

/** Fetch the list once; at most MOST tables. */
export async function loadTables() {
  if (tables) return tables;
  const found = [];
  for (;;) {
    const page = await get("/tables", { offset: found.length, limit: PAGE });
    found.push(...page.tables);
    total = page.total;
    if (found.length >= Math.min(total, MOST) || !page.tables.length) break;
  }
  tables = found;
  return tables;
}

export async function openSchema() {
  try {
    await loadTables();
    draw();
  } catch (error) {
    id("tables-list").replaceChildren(failureBox(error));
  }
}

async function draw() {
  const wanted = id("table-search").value.trim().toLowerCase();
  let found = tables.map((table) => match(table, wanted)).filter(Boolean);
  if (wanted && total > tables.length) {
    // More than are here: the server knows the names of the others.
    const page = await get("/tables", { text: wanted.slice(0, 200), limit: SHOWN });
    const known = new Set(found.map((one) => one.table.text));
    const others = page.tables.filter((table) => !known.has(table.text));
    found = [...found, ...others.map((table) => ({ table, columns: [] }))];
  }
  const shown = found.slice(0, SHOWN);
  const groups = new Map();
  for (const one of shown) {
    const source = one.table.table.source;
    groups.set(source, [...(groups.get(source) || []), one]);
  }
  id("tables-list").replaceChildren(
    ...[...groups].map(([source, group]) =>
      el("section", {}, el("h3.source", {}, foreign(source)), group.map(tableItem)),
    ),
  );
  const more = found.length > shown.length ? `, ${shown.length} shown: type more to narrow` : "";
  const all = wanted ? found.length : total;
  id("tables-count").textContent = (wanted && !found.length)
    ? "No table or column has this in its name."
    : count(all, "table") + (wanted ? " found" : "") + more;
}

function match(table, wanted) {
  const columns = wanted ? table.columns.filter((name) => name.toLowerCase().includes(wanted)) : [];
  if (wanted && !columns.length && !table.text.toLowerCase().includes(wanted)) return null;
  return { table, columns };
}

function tableItem({ table, columns }) {
  const body = el("div.table-body");
  const found = columns.length ? el("span.faint", {}, ": ", foreign(columns.slice(0, 4).join(", "))) : null;
  const size = table.rows === null ? table.kind : count(table.rows, "row");
  const name = table.table.schema ? `${table.table.schema}.${table.table.name}` : table.table.name;
  const node = el(
    "details.table-item",
    {},
    el("summary", {}, foreign(name), found, el("span.faint.size", {}, size)),
    body,
  );
  node.addEventListener("toggle", () => {
    if (node.open && !body.childNodes.length) fill(body, table);
  });
  return node;
}

async function fill(body, table) {
  body.replaceChildren(el("p.faint", {}, "…"));
  try {
    const state = await get("/table", { table: table.text });
    const samples = el("div");
    body.replaceChildren(
      state.comment ? el("p", { dir: "auto" }, state.comment) : "",
      el("ul.columns.plain", {}, state.columns.map((column) => columnItem(column, state))),
      state.notes.length ? el("ul.faint", {}, state.notes.map((note) => el("li", { dir: "auto" }, note))) : "",
      el(
        "div.tools",
        {},
        button("Ask about it", () => choose(state)),
        button("Sample rows", () => showSamples(samples, table.text)),
      ),
      samples,
    );
  } catch (error) {
    body.replaceChildren(failureBox(error));
  }
}

function columnItem(column, state) {
  const key = state.foreign_keys.find((one) => one.columns.includes(column.name));
  const marks = [
    state.primary_key.includes(column.name) ? "key" : null,
    key ? `refers to ${key.target.name}` : null,
    state.redacted.includes(column.name) ? "not readable" : null,
  ].filter(Boolean);
  return el(
    "li",
    {},
    el("span.column-name", {}, foreign(column.name)),
    " ",
    el("span.faint", {}, column.type),
    marks.map((mark) => el("span.mark", {}, foreign(mark))),
    column.comment ? el("div.faint", { dir: "auto" }, column.comment) : null,
    profileLine(column.profile),
  );
}

function profileLine(profile) {
  if (!profile) return null;
  const parts = [`${profile.distinct.toLocaleString("en")} different`];
  if (profile.nulls) parts.push(`${profile.nulls.toLocaleString("en")} missing`);
  if (profile.minimum !== null) parts.push(`${short(profile.minimum)} to ${short(profile.maximum)}`);
  const often = profile.frequent.filter((one) => one.count > 1).slice(0, 4);
  if (often.length) parts.push(`often ${often.map((one) => short(one.value)).join(", ")}`);
  return el("div.faint.profile", { dir: "auto" }, parts.join(" · "));
}

function short(text) {
  const whole = plain(text);
  return whole.length > 30 ? `${whole.slice(0, 29)}…` : whole;
}

async function showSamples(place, name) {
  try {
    const found = await get("/samples", { table: name });
    const kind = (value) => (value === null ? "td.null" : isWord(plain(value)) ? "td.word" : "td");
    const cells = (row) => row.map((value) => el(kind(value), { dir: "auto" }, value ?? "NULL"));
    place.replaceChildren(
      el(
        "div.table-scroll",
        { tabindex: "0", role: "region", "aria-label": "Sample rows, scrolls" },
        el(
          "table.result",
          {},
          el("thead", {}, el("tr", {}, found.columns.map((one) => el("th", { scope: "col", dir: "auto" }, one)))),
          el("tbody", {}, found.rows.map((row) => el("tr", {}, cells(row)))),
        ),
      ),
    );
    say(`${found.rows.length} sample rows`);
  } catch (error) {
    place.replaceChildren(failureBox(error));
  }
}
