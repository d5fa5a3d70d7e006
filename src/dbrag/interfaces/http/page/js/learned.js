// The learned questions with their SQL: looked through, corrected, forgotten.

import { get, post, remove } from "./api.js";
import { button, count, el, failureBox, foreign, id, say, tableName } from "./dom.js";
import { confirmed } from "./panels.js";
import { sqlEditor } from "./sql.js";

const SHOWN = 100;
let known = { pairs: [], problems: [] };

export function setUpLearned() {
  id("learned-search").addEventListener("input", show);
}

export async function openLearned() {
  try {
    known = await get("/learned");
    id("learned-problem").replaceChildren(...known.problems.map(unread));
    show();
  } catch (error) {
    id("learned-problem").replaceChildren(failureBox(error));
  }
}

export function refreshLearned() {
  if (!id("learned").hidden) openLearned();
}

function unread({ line, message }) {
  return el("p.failure", {}, `Line ${line} of the file: `, foreign(message));
}

function show() {
  const wanted = id("learned-search").value.trim().toLowerCase();
  const fits = ({ question, sql }) => `${question}\n${sql}`.toLowerCase().includes(wanted);
  const found = known.pairs.filter(fits);
  const none = wanted ? "No learned question has this." : "Nothing was learned yet: Right, below an answer, keeps it.";
  const more = found.length > SHOWN ? `, the first ${SHOWN} shown` : "";
  id("learned-count").textContent = found.length ? `${count(found.length, "question")}${more}` : none;
  id("learned-list").replaceChildren(...found.slice(0, SHOWN).map(item));
}

function item(pair) {
  const problem = el("div", { role: "alert" });
  const editor = sqlEditor(pair.sql, { label: `SQL of: ${pair.question.slice(0, 80)}`, onrun: () => correct() });
  const keep = button("Run and keep", () => correct(), { class: "main-button" });
  const tables = pair.tables.map(tableName).join(", ");

  async function correct() {
    if (keep.disabled) return;
    keep.disabled = true;
    problem.replaceChildren();
    try {
      const body = { question: pair.question, sql: editor.area.value, source: pair.source };
      const done = await post("/learned", body);
      await openLearned();
      told(`kept: its SQL gives ${count(done.row_count, "row")}`);
    } catch (error) {
      problem.replaceChildren(failureBox(error, "change the SQL and keep it again"));
      editor.area.focus();
    } finally {
      keep.disabled = false;
    }
  }

  return el(
    "li",
    {},
    foreign(pair.question, "strong"),
    pair.problem ? el("p.failure", {}, "Not used: ", foreign(pair.problem)) : null,
    tables ? el("span.faint", {}, "from ", foreign(tables)) : null,
    el("details", {}, el("summary", {}, "Its SQL"), editor.node, problem, el("div.tools", {}, keep)),
    el(
      "div.tools",
      {},
      button("Forget", () => forget(pair), { class: "quiet", "aria-label": `Forget: ${pair.question.slice(0, 80)}` }),
    ),
  );
}

async function forget(pair) {
  const same = known.pairs.filter((one) => one.question === pair.question).length;
  const pairs = same > 1 ? `Its ${same} statements are` : "Its SQL is";
  const text = `${pairs} taken out of the file, for everybody who uses it: “${pair.question.slice(0, 200)}”`;
  if (!(await confirmed("Forget this learned question?", text, "Forget"))) return;
  try {
    await remove(`/learned?${new URLSearchParams({ question: pair.question })}`);
    await openLearned();
    told("forgotten");
  } catch (error) {
    id("learned-problem").replaceChildren(failureBox(error));
  }
}

/** Say it, and be where the list begins: what had the focus is gone. */
function told(text) {
  say(text);
  const place = id("learned-count");
  place.textContent = `${place.textContent.replace(/\.$/, "")}; ${text}`;
  id("learned-title").focus();
}
