// The program: its SQL can be changed and run again; the guard of the server admits it or not.

import { post } from "./api.js";
import { button, count, el, failureBox, foreign, say } from "./dom.js";
import { sqlBlock, sqlEditor } from "./sql.js";

/**
 * @param {object} answer whose `sql` is shown
 * @param {object} options steps: told by the stream; onresult(result) of the user's SQL; onback()
 */
export function program(answer, { steps = [], onresult, onback }) {
  const problem = el("div", { role: "alert", id: "sql-problem" });
  const original = answer.sql || "";
  const run = button("Run this SQL", () => start(), { class: "main-button" });
  const back = button("Back to the answer", () => {
    editor.set(original);
    problem.replaceChildren();
    back.hidden = keep.hidden = true;
    editor.area.removeAttribute("aria-invalid");
    onback();
    say("back to the answer");
  }, { hidden: true });
  const keep = button("Keep as the right answer", () => learn(), { hidden: true });
  const editor = sqlEditor(original, { label: "SQL, can be changed",
                                       describedby: "sql-help sql-problem", onrun: () => start() });
  let ran = null;

  async function start() {
    if (run.disabled) return;
    run.disabled = true;
    problem.replaceChildren();
    const sql = editor.area.value;
    const source = answer.tables[0]?.source ?? null;
    try {
      const result = await post("/sql", { sql, source, max_rows: 1000 });
      editor.area.removeAttribute("aria-invalid");
      ran = sql;
      back.hidden = false;
      keep.hidden = !answer.votes || sql.trim() === original.trim();
      onresult(result);
      say(`your SQL gave ${count(result.row_count, "row")}`);
    } catch (error) {
      editor.area.setAttribute("aria-invalid", "true");
      problem.replaceChildren(failureBox(error, "change the SQL and run it again"));
      editor.area.focus();
    } finally {
      run.disabled = false;
    }
  }

  async function learn() {
    try {
      await post("/feedback", { id: answer.id, verdict: "wrong", sql: ran });
      keep.hidden = true;
      dispatchEvent(new Event("dbrag:learned"));
      say("kept: this question is answered by your SQL from now on");
      problem.replaceChildren(el("p.done", {}, "Kept: this question is answered by your SQL from now on."));
    } catch (error) {
      problem.replaceChildren(failureBox(error));
    }
  }

  return el(
    "section.card",
    { "aria-labelledby": "sql-title" },
    el("h3", { id: "sql-title" }, "SQL", answer.dialect ? el("span.faint", {}, ` (${answer.dialect})`) : null),
    editor.node,
    el("p.faint", { id: "sql-help" }, "Change it and run it: only reading is allowed. Ctrl+Enter runs."),
    problem,
    el("div.tools", {}, run, back, keep),
    stepList(answer, steps),
  );
}

/** A program of several steps: what each gave. */
function stepList(answer, told) {
  if ((answer.steps || []).length < 2) return "";
  const byName = new Map(told.map((step) => [step.name, step]));
  const items = answer.steps.map((step) => {
    const found = byName.get(step.name);
    const rows = found?.row_count;
    return el(
      "li",
      {},
      el("strong", {}, foreign(step.name)),
      rows === undefined ? "" : ` gave ${count(rows, "row")}`,
      found?.error ? failureBox(found.error) : "",
      sqlBlock(step.sql, `SQL of step ${step.name}`),
    );
  });
  return el("details", {}, el("summary", {}, `Its ${items.length} steps`), el("ol", {}, items));
}
