// Asking: the form, the stages as they come, cancelling.

import { Failure, newId, post, stream } from "./api.js";
import { showAnswer } from "./answer.js";
import { el, failureBox, foreign, id, say } from "./dom.js";
import { sqlBlock } from "./sql.js";
import { stageWords } from "./words.js";

const MAX_ROWS = 1000;
let running = null;
let learning = false;
let afterwards = () => {};

/** @param {object} options learning: whether answers can be judged; onanswered() */
export function configureAsk(options) {
  if ("learning" in options) learning = options.learning;
  if (options.onanswered) afterwards = options.onanswered;
}

export const canLearn = () => learning;

export function setUpAsk() {
  const form = id("ask");
  const area = id("question");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(area.value);
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  id("cancel").addEventListener("click", cancel);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && running && !id("dialog").open) cancel();
    const typing = /^(?:input|textarea|select)$/i.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      area.focus();
    }
  });
}

export async function ask(question) {
  if (running) return;
  if (!question.trim()) {
    tellProblem({ message: "there is no question yet", hint: "type one, or choose an example" });
    id("question").focus();
    return;
  }
  const job = { id: newId(), abort: new AbortController(), cancelled: false };
  running = job;
  begin();
  const progress = new Progress();
  try {
    const answer = await follow(job, question, progress);
    progress.end();
    showAnswer(answer, { feedback: learning, steps: progress.steps, focus: mayMoveFocus() });
    afterwards();
  } catch (error) {
    progress.end();
    if (job.cancelled || error.code === "cancelled") told("Cancelled.");
    else tellProblem(error, true);
  } finally {
    finish();
  }
}

async function follow(job, question, progress) {
  const body = { question, id: job.id, steps: true, max_rows: MAX_ROWS };
  try {
    for await (const { name, data } of stream("/ask/stream", body, job.abort.signal)) {
      if (name === "answer") return data;
      if (name === "error") throw new Failure(data.error, data.retry_s);
      progress.event(name, data);
    }
  } catch (error) {
    if (error instanceof Failure || error.name === "AbortError") throw error;
  }
  throw new Failure({
    code: "offline",
    message: "the connection ended before the answer came",
    hint: "is dbrag serve still running? Then ask again",
  });
}

async function cancel() {
  const job = running;
  if (!job || job.cancelled) return;
  job.cancelled = true;
  try {
    await post(`/jobs/${job.id}/cancel`, {});
  } catch {
    // The server cancels the job of a client that leaves, too.
  }
  job.abort.abort();
}

// Somebody who reads or types elsewhere by now is not pulled away.
function mayMoveFocus() {
  const at = document.activeElement;
  return !at || at === document.body || id("ask").contains(at);
}

function begin() {
  id("notice").replaceChildren();
  id("answer").replaceChildren();
  id("cancel").hidden = false;
  id("send").disabled = true;
  id("main").setAttribute("aria-busy", "true");
}

function finish() {
  running = null;
  const hadFocus = document.activeElement === id("cancel");
  id("cancel").hidden = true;
  id("send").disabled = false;
  id("main").removeAttribute("aria-busy");
  if (hadFocus) id("question").focus();
}

function told(text) {
  id("notice").replaceChildren(el("p.card", {}, text));
}

export function tellProblem(error, again = false) {
  id("notice").replaceChildren(failureBox(error, again ? "change the question, or ask again" : ""));
}

/** The stages of a question, while it is worked on. */
class Progress {
  constructor() {
    this.steps = [];
    this.started = performance.now();
    this.next = el("span", {}, "Asking");
    this.clock = el("span.faint", { "aria-hidden": "true" });
    this.list = el("ol.stages.plain");
    this.node = id("progress");
    this.node.replaceChildren(
      el("h2", { id: "progress-title", class: "sr" }, "Progress"),
      el("p.now", {}, el("span.spinner", { "aria-hidden": "true" }), this.next, " ", this.clock),
      this.list,
    );
    this.node.hidden = false;
    this.timer = setInterval(() => this.tick(), 500);
    say("asking");
  }

  tick() {
    this.clock.textContent = `${Math.round((performance.now() - this.started) / 1000)} s`;
  }

  event(name, data) {
    if (name === "step" && data.name && data.row_count !== undefined) this.steps.push(data);
    const words = stageWords(name, data);
    if (words.next && this.next.textContent !== `${words.next} …`) {
      this.next.textContent = `${words.next} …`;
      say(words.next);
    }
    if (!words.text) return;
    const parts = [words.failed ? "✕ " : "✓ ", foreign(words.text)];
    if (words.detail) parts.push(el("span.faint", {}, ": ", foreign(words.detail)));
    if (words.sql) {
      parts.push(el("details", {}, el("summary", {}, "SQL"), sqlBlock(words.sql, "SQL of this program")));
    }
    this.list.append(el("li", {}, parts));
  }

  end() {
    clearInterval(this.timer);
    this.node.hidden = true;
  }
}
