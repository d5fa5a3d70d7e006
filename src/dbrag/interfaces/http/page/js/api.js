// Requests to /api/v1 of this server; nothing else is ever asked.

const BASE = "api/v1";
const TOKEN_KEY = "dbrag-token";

/** A request that failed: code, message and hint as the API tells them. */
export class Failure extends Error {
  constructor({ code, message, hint }, retryS = null) {
    super(message);
    this.code = code;
    this.hint = hint || "";
    this.retryS = retryS;
  }
}

let askForToken = null;

/** Sets what asks the user for a token: (wrong) => Promise<string|null>. */
export function onTokenNeeded(ask) {
  askForToken = ask;
}

// Kept until the tab is closed, and only where it was typed.
function token() {
  try {
    return sessionStorage.getItem(TOKEN_KEY);
  } catch {
    return null;
  }
}

function keepToken(value) {
  try {
    sessionStorage.setItem(TOKEN_KEY, value);
  } catch {
    // asked again, then
  }
}

async function send(method, path, { body, signal } = {}, given = token()) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (given) headers.Authorization = `Bearer ${given}`;
  let response;
  try {
    response = await fetch(`${BASE}${path}`, {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure({
      code: "offline",
      message: "the server does not answer",
      hint: "is dbrag serve still running? Start it again, then repeat this",
    });
  }
  if (response.status === 401 && askForToken) {
    const typed = await askForToken(Boolean(given));
    if (typed) {
      keepToken(typed);
      return send(method, path, { body, signal }, typed);
    }
  }
  if (!response.ok) throw await failureOf(response);
  return response;
}

async function failureOf(response) {
  const retry = Number(response.headers.get("Retry-After")) || null;
  try {
    return new Failure((await response.json()).error, retry);
  } catch {
    const message = `the server answered with status ${response.status}`;
    return new Failure({ code: "http", message, hint: "the server's log may tell more" }, retry);
  }
}

function query(parameters) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters || {})) {
    for (const one of [value].flat()) if (one !== null && one !== undefined) pairs.append(name, one);
  }
  const text = pairs.toString();
  return text ? `?${text}` : "";
}

export async function get(path, parameters, options = {}) {
  return (await send("GET", path + query(parameters), options)).json();
}

export async function post(path, body, options = {}) {
  return (await send("POST", path, { ...options, body })).json();
}

export async function remove(path) {
  await send("DELETE", path);
}

export async function download(path, parameters, name) {
  const response = await send("GET", path + query(parameters));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** An id for a job, so that it can be cancelled before it has answered. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The events of a stream: {name, data}, as they arrive.
 * @param {AbortSignal} signal ends it; the server then cancels the job
 */
export async function* stream(path, body, signal) {
  const response = await send("POST", path, { body, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    waiting += value;
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      const event = parsed(block);
      if (event) yield event;
    }
  }
}

function parsed(block) {
  let name = "message";
  let data = null;
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data = line.slice(6);
  }
  return data === null ? null : { name, data: JSON.parse(data) };
}
