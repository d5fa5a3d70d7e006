// The source rows that a cell of a result was made from: a second statement, asked of the server.

import { get } from "./api.js";
import { button, count, el, failureBox, foreign, say, tableName } from "./dom.js";
import { sqlBlock } from "./sql.js";
import { resultTable } from "./table.js";

const LIMIT = 100;
const SHORT = 80;

/**
 * A place that fills when a cell is chosen.
 * @param {object} result a kept one {id, columns}
 * @param {number|null} reading of the answer, instead of it
 * @returns {{node, open}} open({row, column, cell}) asks and shows
 */
export function sourceRows(result, reading = null) {
  const node = el("div.behind");
  let asked = 0;

  function close(cell) {
    asked += 1;
    node.replaceChildren();
    cell.classList.remove("chosen");
    // A table that was sorted meanwhile has other cells.
    const reached = node.parentNode.querySelector(".result td[tabindex='0']");
    (cell.isConnected ? cell : reached)?.focus();
  }

  async function open({ row, column, cell }) {
    const mine = (asked += 1);
    const parameters = { row, column, limit: LIMIT, reading };
    let shown;
    try {
      shown = rowsOf(await get(`/results/${result.id}/source-rows`, parameters));
    } catch (error) {
      shown = [failureBox(withHint(error))];
    }
    if (mine !== asked) return; // another cell was chosen meanwhile
    const title = el("h4", { tabindex: "-1" }, ...titleOf(row, column, cell));
    const whole = button("The whole row", () => open({ row, column: null, cell }));
    node.replaceChildren(
      title,
      ...shown,
      el("div.tools", {}, column === null ? null : whole, button("Close", () => close(cell))),
    );
    node.onkeydown = (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close(cell);
    };
    title.focus();
    title.scrollIntoView({ block: "nearest" });
  }

  function titleOf(row, column, cell) {
    const place = `row ${(row + 1).toLocaleString("en")}`;
    if (column === null) return [`Source rows behind ${place}`];
    const name = result.columns[column].name || `column ${column + 1}`;
    const text = cell.textContent;
    const value = text.length > SHORT ? `${text.slice(0, SHORT)}…` : text;
    return ["Source rows behind ", foreign(name), " = ", foreign(value), ` (${place})`];
  }

  return { node, open };
}

function rowsOf(found) {
  const more = found.warnings.some((one) => one.code === "more_rows");
  const rows = count(found.row_count, "row");
  const tables = found.tables.map(tableName).join(", ");
  say(more ? `the first ${rows}, there are more` : rows);
  return [
    el("p.faint", {}, more ? `The first ${rows}; there are more. From ` : `${rows} from `, foreign(tables)),
    resultTable({ ...found, id: null }, { caption: "Source rows" }),
    el("details", {}, el("summary", {}, "SQL of the source rows"), sqlBlock(found.sql, "SQL of the source rows")),
  ];
}

/** The server's hint names commands; here the program stands below. */
function withHint(error) {
  const hint = error.code === "usage" ? "see below how it was computed, or run SQL of your own" : error.hint;
  return { code: error.code, message: error.message, hint, retryS: error.retryS };
}
