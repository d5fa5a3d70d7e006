// The page: each part is set up, then the server is asked what there is.

import { get, onTokenNeeded } from "./api.js";
import { ask, configureAsk, setUpAsk, tellProblem } from "./ask.js";
import { count, el, foreign, id } from "./dom.js";
import { aboutTable, showExamples } from "./examples.js";
import { openHistory, refreshHistory, setUpHistory } from "./history.js";
import { openLearned, refreshLearned, setUpLearned } from "./learned.js";
import { askToken, closeIfNarrow, setUpPanel } from "./panels.js";
import { loadTables, openSchema, setUpSchema } from "./schema.js";
import { setUpTheme } from "./theme.js";

const TRIES = 200;

setUpTheme(id("theme"));
setUpAsk();
setUpPanel("tables", openSchema);
setUpPanel("history", openHistory);
setUpHistory();
setUpPanel("learned", openLearned);
setUpLearned();
setUpSchema((state) => {
  closeIfNarrow("tables");
  const area = id("question");
  area.value = aboutTable(state);
  area.focus();
  area.select();
});
onTokenNeeded(askToken);
configureAsk({ onanswered: refreshHistory });
addEventListener("dbrag:learned", refreshLearned);
start();

async function start() {
  try {
    const state = await whenReady();
    about(state);
    configureAsk({ learning: state.learning && state.history });
    if (!state.history) id("open-history").hidden = true;
    id("open-learned").hidden = !state.learning;
    const tables = await loadTables();
    await showExamples(tables, (text) => {
      id("question").value = text;
      ask(text);
    });
  } catch (error) {
    tellProblem(error);
  }
}

/** The sources; while the index is being made, the server is asked again. */
async function whenReady() {
  const note = el("p.card", {}, "The index is being made. This page goes on by itself when it is ready.");
  for (let tries = 1; ; tries += 1) {
    try {
      const state = await get("/sources");
      note.remove();
      return state;
    } catch (error) {
      if (error.code !== "starting" || tries === TRIES) throw error;
      if (!note.isConnected) id("notice").append(note);
      await new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(error.retryS ?? 2, 2)));
    }
  }
}

function about(state) {
  const names = state.sources.map((source) => source.name);
  const shown = names.length <= 3 ? names.join(", ") : count(names.length, "source");
  const where = state.remote
    ? "a remote model: questions and sample values leave this machine"
    : "a model of this machine: nothing leaves it";
  id("about").replaceChildren(foreign(shown), el("span.faint", { title: state.model }, ` · ${where}`));
  const odd = state.sources.filter((source) => source.status === "skipped");
  if (odd.length || state.warnings.length) {
    const lines = [
      ...odd.map((source) => `${source.name} cannot be read: ${source.reason}`),
      ...state.warnings.map((one) => one.message),
    ];
    id("notice").append(
      el("ul.warnings", { "aria-label": "What to know" }, lines.map((text) => el("li", { dir: "auto" }, text))),
    );
  }
}
