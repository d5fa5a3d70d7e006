// An answer: what it is, how sure it is, the result, the chart, the program, the tables.

import { post } from "./api.js";
import { sourceRows } from "./behind.js";
import { chartSection } from "./chart.js";
import { diagramSection } from "./diagram.js";
import { button, count, el, failureBox, foreign, id, say, seconds, tableName } from "./dom.js";
import { program } from "./program.js";
import { sqlBlock } from "./sql.js";
import { resultTable, plain } from "./table.js";
import { agreementWords, confidenceWords, evidenceWords, warningHead } from "./words.js";

/**
 * Show an answer in place of the last one.
 * @param {object} answer as the API tells it
 * @param {object} options focus: move the focus to it; feedback: whether it can be learned from
 */
export function showAnswer(answer, { focus = true, feedback = false, steps = [] } = {}) {
  const result = el("div");
  const head = el("div");
  const place = id("answer");
  // What the user's own SQL gave takes the place of the answer's result; its program stays.
  const showResult = (shown, own) => {
    head.replaceChildren(own ? ownHead(shown) : headOf(answer, feedback));
    result.replaceChildren(...resultParts(shown, own));
    if (own) head.querySelector("h2").focus();
  };
  showResult(answer, false);
  const parts = [head, result];
  if (answer.sql || answer.status === "answered") {
    parts.push(program(answer, { steps, onresult: (own) => showResult(own, true),
                                 onback: () => showResult(answer, false) }));
  }
  place.replaceChildren(...parts);
  const title = place.querySelector("h2");
  if (focus) {
    title.focus();
    title.scrollIntoView({ block: "start" });
  }
  say(spoken(answer));
}

function spoken(answer) {
  if (answer.status !== "answered") return `No answer: ${answer.error?.message ?? answer.text}`;
  const sure = confidenceWords(answer.confidence);
  return `Answer: ${answer.text}${sure ? ` Confidence: ${sure.word}.` : ""}`;
}

// ---- the head ---------------------------------------------------------------------------

function headOf(answer, feedback) {
  const node = el("section.card.answer-head", { "aria-labelledby": "answer-title" });
  const answered = answer.status === "answered";
  node.append(
    el("h2", { id: "answer-title", tabindex: "-1" }, answered ? "Answer" : "No answer"),
    el("p.asked", {}, foreign(answer.question)),
  );
  if (answered) node.append(...answeredParts(answer));
  else if (answer.error) node.append(failureBox(answer.error, "ask in other words"));
  node.append(warnings(answer.warnings), readings(answer));
  if (answered && feedback) node.append(verdict(answer));
  return node;
}

function answeredParts(answer) {
  const parts = [];
  const single = answer.row_count === 1 && answer.columns.length === 1;
  const value = single ? answer.rows[0]?.[0] : undefined;
  const short = value !== undefined && value !== null && plain(value).length <= 40;
  if (short) {
    // The text is the value itself, or the value and why it is not sure.
    const whole = answer.text.length <= 45;
    const shown = whole ? answer.text : plain(value);
    parts.push(el(shown.length > 14 ? "p.big.big-long" : "p.big", { dir: "auto" }, shown));
    if (!whole) parts.push(el("p", { dir: "auto" }, answer.text));
  } else parts.push(el("p.text", { dir: "auto" }, answer.text));
  const facts = [];
  const sure = confidenceWords(answer.confidence);
  if (sure) {
    const tip = "The estimated probability that the answer is right";
    facts.push(
      el(`span.badge.${sure.level}`, { title: tip },
         el("span", { "aria-hidden": "true" }, `${sure.mark} `), `${sure.word} (${sure.percent})`),
    );
  }
  const agreement = agreementWords(answer);
  if (agreement) facts.push(el("span.fact", {}, agreement));
  const tables = answer.tables.map(tableName).join(", ");
  if (tables) facts.push(el("span.fact", {}, "from ", foreign(tables)));
  if (answer.seconds?.total) facts.push(el("span.fact", {}, seconds(answer.seconds.total)));
  parts.push(el("p.facts", {}, facts));
  return parts;
}

function ownHead(shown) {
  return el(
    "section.card.answer-head",
    { "aria-labelledby": "answer-title" },
    el("h2", { id: "answer-title", tabindex: "-1" }, "Result of your SQL"),
    el("p", {}, `${count(shown.row_count, "row")} in ${seconds(shown.seconds?.total ?? 0)}`),
    warnings(shown.warnings),
  );
}

function warnings(list) {
  if (!list?.length) return "";
  const lines = list.map((one) =>
    el("li", { title: one.code }, el("strong", {}, `${warningHead(one.code)}: `), foreign(one.message)),
  );
  return el("ul.warnings", { "aria-label": "What to know" }, lines);
}

/** The answer's own reading beside the others, each in words. */
function readings(answer) {
  if (!answer.readings?.length) return "";
  const own = el(
    "li.reading",
    {},
    el("h4", {}, "This answer"),
    el("p", { dir: "auto" }, answer.text),
    wordList(answer.evidence),
  );
  const others = answer.readings.map((one, i) => {
    const behind = sourceRows({ ...one, id: answer.id }, i);
    return el(
      "li.reading",
      {},
      el("h4", {}, `Another reading (${count(one.votes, "program")})`),
      el("p", { dir: "auto" }, one.text),
      el("p", {}, el("strong", {}, "It "), foreign(one.difference)),
      el(
        "details",
        {},
        el("summary", {}, "Its result and SQL"),
        resultTable({ ...one, id: answer.id }, { reading: i, caption: `Result of reading ${i + 1}`,
                                                 oncell: behind.open }),
        behind.node,
        sqlBlock(one.sql, `SQL of reading ${i + 1}`),
      ),
    );
  });
  return el(
    "div",
    {},
    el("h3", {}, "The question can be read in more than one way"),
    el("ul.readings.plain", {}, own, others),
    el("p.faint", {}, "To choose one, say it in the question."),
  );
}

function wordList(evidence) {
  const told = evidenceWords(evidence);
  if (!told.length) return "";
  return el(
    "dl.words",
    {},
    told.map(([head, lines]) => [el("dt", {}, head), lines.map((text) => el("dd", { dir: "auto" }, text))]),
  );
}

function verdict(answer) {
  const told = el("span", { role: "status" });
  const judge = async (right) => {
    try {
      const done = await post("/feedback", { id: answer.id, verdict: right ? "right" : "wrong" });
      const kept = done.learned ? "kept: this question is answered so from now on" : "noted";
      const next = right ? "" : "; correct the SQL below, run it, then keep it";
      box.replaceChildren(told);
      if (done.learned) dispatchEvent(new Event("dbrag:learned"));
      told.textContent = done.note || `${right ? "right" : "wrong"}: ${kept}${next}`;
    } catch (error) {
      box.append(failureBox(error));
    }
  };
  const box = el(
    "div.verdict",
    { role: "group", "aria-label": "Is this answer right?" },
    el("span.faint", {}, "Is this right?"),
    button("Right", () => judge(true), { class: "quiet" }),
    button("Wrong", () => judge(false), { class: "quiet" }),
    told,
  );
  return box;
}

// ---- the result -------------------------------------------------------------------------

function resultParts(shown, own) {
  if (shown.status !== "answered" || !shown.columns.length) return [];
  const caption = own ? "Result of your SQL" : "Result";
  const behind = sourceRows(shown);
  const parts = [
    el(
      "section.card",
      { "aria-labelledby": "result-title" },
      el("h3", { id: "result-title" }, "Result"),
      resultTable(shown, { caption, oncell: behind.open }),
      behind.node,
    ),
    chartSection(shown.id),
  ];
  const words = wordList(shown.evidence);
  if (words) {
    parts.push(
      el("section.card", { "aria-labelledby": "words-title" },
         el("h3", { id: "words-title" }, "How it was computed"), words),
    );
  }
  if (shown.tables.length) parts.push(diagramSection(shown.tables, shown.evidence));
  return parts;
}
