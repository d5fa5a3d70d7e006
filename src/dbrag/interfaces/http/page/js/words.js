// What the API's numbers and codes are called, in plain words (docs/evidence.md).

import { count } from "./dom.js";

export const SURE = 0.7;
export const UNSURE = 0.5;

/** {word, mark, level} of a confidence; null where there is none. */
export function confidenceWords(confidence) {
  if (confidence === null || confidence === undefined) return null;
  const percent = `${Math.round(100 * confidence)}%`;
  if (confidence >= SURE) return { word: "sure", percent, level: "good", mark: "●" };
  if (confidence >= UNSURE) return { word: "fairly sure", percent, level: "fair", mark: "◐" };
  return { word: "not sure", percent, level: "poor", mark: "○" };
}

/** How many of the programs gave this result, as the command line says it. */
export function agreementWords(answer) {
  if (!answer.votes) return "";
  if (answer.agreement === null) return "one program, no vote";
  const valid = answer.votes.valid;
  const same = Math.round(answer.agreement * valid);
  if (valid === 1) return "only 1 program gave a result";
  if (same === valid) return `all ${valid} programs gave this result`;
  return `${same} of ${valid} programs gave this result`;
}

const WARNINGS = {
  budget_used_up: "Stopped early",
  dates_as_text: "Dates stored as text",
  did_you_mean: "Did you mean",
  duplicate_columns: "Same column twice",
  empty_result: "Nothing found",
  index_stale: "Older index",
  join_drops: "Rows left out by a join",
  join_multiplies: "Rows counted more than once",
  learned: "Learned",
  matched_spellings: "All spellings taken",
  mended: "Mended",
  mixed_spellings: "Several spellings",
  more_rows: "More rows",
  nulls_dropped: "Missing values",
  numbers_as_text: "Numbers stored as text",
  prompt_shortened: "Not all was shown to the model",
  rows_cut: "Rows cut",
  text_cut: "Text cut",
  votes_split: "The programs disagree",
};

/** A heading for a warning's code. */
export function warningHead(code) {
  if (WARNINGS[code]) return WARNINGS[code];
  const words = code.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const EVIDENCE = [
  ["joins", "Joined"],
  ["filters", "Only where"],
  ["groups", "For each"],
  ["results", "Shown"],
  ["sets", "Combined"],
  ["order", "Ordered by"],
];

/** [[heading, [line]]]: the program in words, without the tables. */
export function evidenceWords(evidence) {
  if (!evidence) return [];
  const told = EVIDENCE.filter(([key]) => evidence[key]?.length).map(([key, head]) => [
    head,
    evidence[key],
  ]);
  if (evidence.limit) told.push(["At most", [evidence.limit]]);
  return told;
}

/** What an event of the stream means: {text, detail, next}. */
export function stageWords(name, data) {
  switch (name) {
    case "job":
      return data.state === "queued"
        ? { text: `Waiting: place ${data.position} in the queue`, next: "Waiting for a free place" }
        : { text: null, next: "Looking for tables" };
    case "index":
      return { text: "The index is brought up to date", next: "Reading and indexing" };
    case "retrieve": {
      const names = data.candidates.slice(0, 5).map((one) => one.table);
      const more = data.candidates.length - names.length;
      const detail = names.join(", ") + (more > 0 ? ` and ${more} more` : "");
      return { text: "Found tables that may matter", detail, next: "Choosing tables" };
    }
    case "rerank":
      return { text: "Put the tables in order", next: "Choosing tables" };
    case "learned":
      return { text: "Found a learned question like it", detail: data.question, next: "Choosing tables" };
    case "select":
      return {
        text: "Chose tables",
        detail: (data.tables || []).join(", "),
        next: "Writing a program",
      };
    case "step":
      return { text: `Wrote step ${data.number ?? ""} ${data.name ?? ""}`.trim(), sql: data.sql,
               next: "Writing the next step" };
    case "program": {
      const what = data.error
        ? `did not run: ${data.error.message}`
        : `gave ${count(data.row_count, "row")}`;
      return { text: `A program ${what}`, sql: data.sql, failed: Boolean(data.error),
               next: data.error ? "Mending it" : "Comparing" };
    }
    case "vote":
      return { text: null, next: `${count(data.cast, "program")} so far, writing another` };
    default:
      return { text: null, next: null };
  }
}
