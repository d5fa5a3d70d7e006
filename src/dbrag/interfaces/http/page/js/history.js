// What was asked: shown again while its result is kept, else ready to be asked again.

import { get, remove } from "./api.js";
import { showAnswer } from "./answer.js";
import { canLearn, tellProblem } from "./ask.js";
import { button, count, el, failureBox, foreign, id } from "./dom.js";
import { closeIfNarrow, confirmed } from "./panels.js";

const SHOWN = 100;

export function setUpHistory() {
  let timer = null;
  id("history-search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(openHistory, 150);
  });
  id("forget-all").addEventListener("click", async () => {
    const text = "All questions and kept results are forgotten, for everybody who uses this server.";
    if (await confirmed("Forget the whole history?", text, "Forget all")) await change("/history");
  });
}

export async function openHistory() {
  try {
    const text = id("history-search").value.slice(0, 200);
    const found = await get("/history", { text, limit: SHOWN });
    const more = found.total > found.entries.length ? `, the latest ${found.entries.length} shown` : "";
    const none = text ? "No question has this." : "Nothing was asked yet.";
    const entries = `${count(found.total, "entry")}${more}`;
    id("history-count").textContent = found.total ? entries : none;
    id("history-list").replaceChildren(...found.entries.map(item));
    id("forget-all").hidden = !found.total;
  } catch (error) {
    id("history-list").replaceChildren(el("li", {}, failureBox(error)));
  }
}

export function refreshHistory() {
  if (!id("history").hidden) openHistory();
}

function item(entry) {
  const when = new Date(entry.at * 1000).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
  const facts = [when];
  if (entry.kind === "sql") facts.push("own SQL");
  facts.push(entry.status === "answered" ? count(entry.row_count, "row") : entry.status);
  if (entry.verdict) facts.push(entry.verdict);
  const open = button("", () => show(entry), { class: "entry" });
  open.append(foreign(entry.question, entry.kind === "sql" ? "code" : "span"), el("span.faint", {}, facts.join(" · ")));
  const forget = button("✕", () => change(`/history/${entry.id}`), {
    class: "quiet", "aria-label": `Forget: ${entry.question.slice(0, 80)}`,
  });
  return el("li", {}, open, forget);
}

async function change(path) {
  try {
    await remove(path);
    await openHistory();
    id("history-title").focus();
  } catch (error) {
    id("history-count").textContent = `${error.message} ${error.hint}`;
  }
}

async function show(entry) {
  id("notice").replaceChildren();
  closeIfNarrow("history");
  if (entry.kind === "ask") id("question").value = entry.question;
  try {
    const answer = await get(`/results/${entry.id}`, { max_rows: 1000 });
    showAnswer(answer, { feedback: entry.kind === "ask" && canLearn() });
  } catch (error) {
    if (error.code !== "result_not_found") return tellProblem(error);
    const hint = entry.kind === "ask" ? "press Ask to ask it again" : "run its SQL again";
    showAnswer({
      ...entry, status: "failed", warnings: [], readings: [], tables: [], steps: [], columns: [],
      error: { message: "this result is no longer kept", hint },
    });
  }
}
