// A table whose cells can be chosen: one is reached by Tab, the others by the arrow keys.

/**
 * Make the cells of a table's body choosable.
 * @param {HTMLTableElement} table
 * @param {function} onchoose told {row, column, cell}, counted from 0 as they are shown
 * @returns {{reset}} to be called when the rows were drawn anew
 */
export function cellGrid(table, onchoose) {
  const body = table.tBodies[0];
  let current = null;
  table.setAttribute("role", "grid");

  const at = (row, column) => body.rows[row]?.cells[column];
  const reach = (cell) => {
    if (current) current.tabIndex = -1;
    current = cell;
    if (cell) cell.tabIndex = 0;
  };
  const choose = (cell) => {
    reach(cell);
    body.querySelector(".chosen")?.classList.remove("chosen");
    cell.classList.add("chosen");
    onchoose({ row: cell.parentNode.sectionRowIndex, column: cell.cellIndex, cell });
  };

  body.addEventListener("keydown", (event) => {
    const cell = event.target;
    if (cell.tagName !== "TD" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(cell);
      return;
    }
    const next = neighbour(event.key, cell.parentNode.sectionRowIndex, cell.cellIndex);
    if (!next) return;
    event.preventDefault();
    reach(next);
    next.focus();
  });

  body.addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    // A button in a cell has its own use, and whoever marks text to copy it chooses nothing.
    if (!cell || event.target.closest("button") || !getSelection().isCollapsed) return;
    choose(cell);
  });

  function neighbour(key, row, column) {
    switch (key) {
      case "ArrowUp":
        return at(row - 1, column);
      case "ArrowDown":
        return at(row + 1, column);
      case "ArrowLeft":
        return at(row, column - 1);
      case "ArrowRight":
        return at(row, column + 1);
      case "Home":
        return at(row, 0);
      case "End":
        return at(row, body.rows[row].cells.length - 1);
      default:
        return undefined;
    }
  }

  return { reset: () => reach(at(0, 0) ?? null) };
}
