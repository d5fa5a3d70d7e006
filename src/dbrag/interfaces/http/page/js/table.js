// A result as a table: sorted here, fetched page by page, copied and downloaded whole.

import { download, get } from "./api.js";
import { button, count, el, failureBox, foreign, say } from "./dom.js";
import { cellGrid } from "./grid.js";

const STEP = 100;
const PAGE = 1000;
const MOST = 10_000;
const LONG = 300;
const WORD = 40; // a value this short stays on one line: no date is broken at its hyphens
const CELL_HELP = "Click a cell, or go to it with the arrow keys and press Enter, to see the rows behind it.";
const NUMBER = /^(?:u?int|float|double|halffloat|decimal)/;

const collator = new Intl.Collator(undefined, { numeric: true });

/**
 * Rows with a head to sort by, "show more", copy and downloads.
 * @param {object} result {id, columns, rows, row_count}
 * @param {object} options reading: number of a reading, or null; caption: text; oncell: told
 *   {row, column, cell} of a cell that is chosen, both places from 0 in the unsorted result
 */
export function resultTable(result, { reading = null, caption, oncell = null }) {
  return new ResultTable(result, reading, caption, oncell).node;
}

class ResultTable {
  constructor(result, reading, caption, oncell) {
    this.result = result;
    this.reading = reading;
    this.rows = result.rows.map((cells, place) => ({ cells, place }));
    this.shown = Math.min(STEP, this.rows.length);
    this.sorted = null;
    this.heads = result.columns.map((column, i) => this.head(column, i));
    this.body = el("tbody");
    this.more = el("div.table-more");
    this.failure = el("div", { role: "alert" });
    const table = el(
      "table.result",
      {},
      el("caption.sr", {}, caption),
      el("thead", {}, el("tr", {}, this.heads)),
      this.body,
    );
    const choose = ({ row, column, cell }) => oncell({ row: this.rows[row].place, column, cell });
    this.grid = oncell ? cellGrid(table, choose) : null;
    const scroll = { tabindex: "0", role: "region", "aria-label": `${caption}, scrolls` };
    this.node = el(
      "div.result-box",
      {},
      this.tools(),
      this.failure,
      el("div.table-scroll", scroll, table),
      this.more,
      oncell ? el("p.faint.hint", {}, CELL_HELP) : null,
    );
    this.draw();
  }

  head(column, i) {
    const numeric = NUMBER.test(column.type);
    const name = column.name || `column ${i + 1}`;
    const mark = el("span.sort-mark", { "aria-hidden": "true" });
    const control = button("", () => this.guard(() => this.sort(i)), { title: column.type });
    control.append(foreign(name), mark);
    return el(numeric ? "th.number" : "th", { scope: "col" }, control);
  }

  tools() {
    const known = this.result.id && this.result.columns.length;
    const file = (form, label) =>
      button(label, () => this.guard(() => this.save(form)), {
        "aria-label": `Download as ${label}`,
      });
    const files = known
      ? [file("csv", "CSV"), file("parquet", "Parquet"), file("json", "JSON")]
      : [];
    return el(
      "div.tools",
      { role: "group", "aria-label": "Use the result" },
      el("span.faint", {}, count(this.result.row_count, "row")),
      button("Copy", () => this.guard(() => this.copy()), { "aria-label": "Copy the table" }),
      files,
    );
  }

  async guard(work) {
    this.failure.replaceChildren();
    try {
      await work();
    } catch (error) {
      this.failure.replaceChildren(failureBox(error));
    }
  }

  /** Fetch the rows that are not here, up to MOST. */
  async complete() {
    const wanted = Math.min(this.result.row_count, MOST);
    while (this.rows.length < wanted) {
      const offset = this.rows.length;
      const parameters = { offset, limit: Math.min(PAGE, wanted - offset), reading: this.reading };
      const page = await get(`/results/${this.result.id}/rows`, parameters);
      if (!page.rows.length) break;
      this.rows.push(...page.rows.map((cells, i) => ({ cells, place: offset + i })));
    }
  }

  async sort(i) {
    await this.complete();
    const turned = this.sorted?.column === i && !this.sorted.down;
    this.sorted = { column: i, down: turned };
    const compare = comparer(this.result.columns[i].type);
    const sign = turned ? -1 : 1;
    this.rows.sort((a, b) => {
      const [x, y] = [a.cells[i], b.cells[i]];
      // What is missing comes last, whichever way.
      if (x === null || y === null) return (x === null) - (y === null) || a.place - b.place;
      return sign * compare(x, y) || a.place - b.place;
    });
    this.heads.forEach((head, n) => {
      if (n === i) head.setAttribute("aria-sort", turned ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      head.querySelector(".sort-mark").textContent = n === i ? (turned ? " ▼" : " ▲") : "";
    });
    this.draw();
    const cut = this.result.row_count > this.rows.length;
    const of = cut ? `: only the first ${count(this.rows.length, "row")}` : "";
    const name = this.result.columns[i].name;
    say(`sorted by ${name}, ${turned ? "largest" : "smallest"} first${of}`);
  }

  draw() {
    const numeric = this.result.columns.map((column) => NUMBER.test(column.type));
    const visible = this.rows.slice(0, this.shown);
    this.body.replaceChildren(
      ...visible.map(({ cells }) => el("tr", {}, cells.map((value, i) => cell(value, numeric[i])))),
    );
    this.grid?.reset();
    const total = this.result.row_count;
    const parts = [];
    if (this.shown < total) {
      const next = Math.min(STEP, Math.min(total, MOST) - this.shown);
      parts.push(el("span.faint", {}, `${count(this.shown, "row")} of ${total.toLocaleString("en")} shown`));
      if (next > 0) parts.push(button(`Show ${next} more`, () => this.guard(() => this.showMore(next))));
      else parts.push(el("span.faint", {}, "download the file to see all"));
      if (this.sorted && total > this.rows.length) {
        parts.push(el("span.faint", {}, `sorted: only the first ${count(this.rows.length, "row")}`));
      }
    }
    this.more.replaceChildren(...parts);
  }

  async showMore(number) {
    const first = this.shown;
    if (this.rows.length < first + number) await this.complete();
    this.shown = Math.min(first + number, this.rows.length);
    this.draw();
    say(`${count(this.shown, "row")} shown`);
    const row = this.body.rows[first];
    if (row) {
      row.tabIndex = -1;
      row.focus();
    }
  }

  async copy() {
    await this.complete();
    const names = this.result.columns.map((column) => column.name);
    const lines = [names, ...this.rows.map((row) => row.cells)].map((line) =>
      line.map((value) => tabCell(plain(value))).join("\t"),
    );
    await toClipboard(lines.join("\n"));
    const left = this.result.row_count - this.rows.length;
    const more = left > 0 ? `; ${count(left, "row")} more are in the file` : "";
    this.told(`copied ${count(this.rows.length, "row")}${more}`);
  }

  async save(form) {
    const name = `dbrag-${this.result.id}.${form}`;
    await download(`/results/${this.result.id}/file`, { format: form, reading: this.reading }, name);
    this.told(`saved as ${name}`);
  }

  told(text) {
    say(text);
    const note = this.node.querySelector(".tools .faint");
    note.textContent = text;
    setTimeout(() => (note.textContent = count(this.result.row_count, "row")), 4000);
  }
}

/** One cell: always text. Long ones can be opened. */
function cell(value, numeric) {
  if (value === null) return el("td.null", {}, "NULL");
  const text = plain(value);
  const node = el(numeric ? "td.number" : "td", { dir: "auto" });
  if (isWord(text)) node.classList.add("word");
  if (text.length <= LONG) {
    node.textContent = text;
    return node;
  }
  const shown = el("span", {}, `${text.slice(0, LONG)}…`);
  const toggle = button("all", () => {
    const open = toggle.getAttribute("aria-expanded") === "false";
    toggle.setAttribute("aria-expanded", String(open));
    toggle.textContent = open ? "less" : "all";
    shown.textContent = open ? text : `${text.slice(0, LONG)}…`;
  }, { class: "quiet", "aria-expanded": "false" });
  node.append(shown, " ", toggle);
  return node;
}

/** Whether a value stays on one line. */
export const isWord = (text) => text.length <= WORD && !text.includes("\n");

export function plain(value) {
  if (value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

// As spreadsheet programs read what is pasted.
function tabCell(text) {
  return /[\t\n\r"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function comparer(type) {
  if (NUMBER.test(type)) return compareNumbers;
  return (a, b) => collator.compare(plain(a), plain(b));
}

/** Numbers, some of them as text because no JavaScript number holds them. */
export function compareNumbers(a, b) {
  const [x, y] = [Number(a), Number(b)];
  if (x !== y || (typeof a === "number" && typeof b === "number")) {
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return x < y ? -1 : x > y ? 1 : 0;
  }
  // Equal as far as a double tells: whole numbers and decimals digit by digit.
  const [p, q] = [digits(a), digits(b)];
  const width = Math.max(p.fraction.length, q.fraction.length);
  const left = BigInt(p.whole + p.fraction.padEnd(width, "0"));
  const right = BigInt(q.whole + q.fraction.padEnd(width, "0"));
  return left < right ? -1 : left > right ? 1 : 0;
}

function digits(value) {
  const match = /^(-?\d+)(?:\.(\d+))?$/.exec(String(value));
  return match ? { whole: match[1], fraction: match[2] || "" } : { whole: "0", fraction: "" };
}

export async function toClipboard(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Without TLS browsers have no clipboard but this one.
  const area = el("textarea.sr", { "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw Object.assign(new Error("the browser does not let the page copy"), { hint: "download the file" });
}
