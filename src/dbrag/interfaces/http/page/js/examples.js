// Questions made from the user's own catalog: names of tables and columns, no value.

import { get } from "./api.js";
import { button, el, foreign, id } from "./dom.js";

const MOST = 5;
const FEW = 40;
const ID = /(?:^|[_\s])(?:id|key|uuid|code|nr|no|number)$|[a-z]Id$/i;
const NUMBER = /int|real|double|float|decimal|numeric|number/i;

/** @param {Array} tables as listed; onchoose(question) */
export async function showExamples(tables, onchoose) {
  const large = [...tables]
    .filter((table) => table.kind === "table" && table.rows !== 0)
    .sort((a, b) => (b.rows ?? 0) - (a.rows ?? 0))
    .slice(0, 8);
  const states = await Promise.all(large.map((table) => get("/table", { table: table.text })));
  const questions = [...new Set(made(states))].slice(0, MOST);
  if (!questions.length) return;
  id("examples").replaceChildren(
    el("span.faint", {}, "For example:"),
    ...questions.map((text) => {
      const one = button("", () => onchoose(text), { class: "example" });
      one.append(foreign(text));
      return one;
    }),
  );
  id("examples").hidden = false;
}

/** One question about a state of a table. */
export function aboutTable(state) {
  const [first] = made([state]);
  return first || `How many ${words(state.table.name)} are there?`;
}

function made(states) {
  const byKind = [joined, grouped, measured, counted];
  const found = [];
  // Another kind for each table, so that they differ.
  for (let round = 0; round < byKind.length; round += 1) {
    states.forEach((state, i) => {
      const question = byKind[(i + round) % byKind.length](state);
      if (question) found.push(question);
    });
  }
  return found;
}

function joined(state) {
  // Of a target with many rows the answer would be long and dull.
  const few = (name) => (state.columns.find((one) => one.name === name)?.profile?.distinct ?? 0) <= FEW;
  const key = state.foreign_keys.find(
    (one) => one.target.name !== state.table.name && few(one.columns[0]),
  );
  if (!key) return null;
  return `How many ${words(state.table.name)} are there for each of the ${words(key.target.name)}?`;
}

function grouped(state) {
  const column = state.columns.find((one) => {
    const different = one.profile?.distinct ?? 0;
    return !isKey(state, one.name) && !isNumber(one) && different >= 2 && different <= FEW;
  });
  return column ? `How many ${words(state.table.name)} are there for each ${words(column.name)}?` : null;
}

function measured(state) {
  const column = state.columns.find((one) => isNumber(one) && !isKey(state, one.name) && !ID.test(one.name));
  return column ? `What is the average ${words(column.name)} of ${words(state.table.name)}?` : null;
}

function counted(state) {
  return `How many ${words(state.table.name)} are there?`;
}

function isKey(state, name) {
  return state.primary_key.includes(name) || state.redacted.includes(name) ||
    state.foreign_keys.some((key) => key.columns.includes(name));
}

const isNumber = (column) => NUMBER.test(column.type);

/** A name as words: order_lines, orderLines → order lines. */
function words(name) {
  const text = name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2")
    .replaceAll("_", " ")
    .replace(/\s+/g, " ")
    .trim();
  return text.length > 40 ? `"${name.slice(0, 80)}"` : text.toLowerCase();
}
