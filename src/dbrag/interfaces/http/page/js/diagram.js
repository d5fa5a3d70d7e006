// The tables that a program reads and their joins, as a small drawing and as a list.

import { get } from "./api.js";
import { el, failureBox, foreign, svg, tableName } from "./dom.js";

const CHAR = 7.3;
const LINE = 18;
const PAD = 10;
const GAP_X = 70;
const GAP_Y = 22;
const MAX_CHARS = 26;
const MAX_COLUMNS = 7;

/**
 * @param {Array} tables ids of the tables that are read
 * @param {object|null} evidence its columns are shown in the boxes
 */
export function diagramSection(tables, evidence) {
  const node = el("section.card", { "aria-labelledby": "diagram-title" });
  node.append(el("h3", { id: "diagram-title" }, tables.length === 1 ? "Table used" : "Tables used"));
  const place = el("div");
  node.append(place);
  draw(place, tables, evidence);
  return node;
}

async function draw(place, tables, evidence) {
  try {
    const names = tables.map(tableName);
    const edges = tables.length > 1 ? await joinsBetween(names) : [];
    const boxes = names.map((name, i) => box(name, tables[i].name, edges, evidence));
    placed(boxes, edges);
    place.append(drawing(boxes, edges), list(names, edges));
  } catch (error) {
    place.append(failureBox(error));
  }
}

async function joinsBetween(names) {
  const found = [];
  for (let offset = 0; ; ) {
    const page = await get("/joins", { table: names.slice(0, 100), offset, limit: 1000 });
    found.push(...page.joins);
    offset += page.joins.length;
    if (!page.joins.length || offset >= page.total) break;
  }
  const known = new Set(names);
  return found
    .map((join) => ({ ...join, from: tableName(join.left), to: tableName(join.right) }))
    .filter((join) => known.has(join.from) && known.has(join.to));
}

function box(name, title, edges, evidence) {
  const keys = edges.flatMap((edge) => [
    ...(edge.from === name ? edge.left_columns : []),
    ...(edge.to === name ? edge.right_columns : []),
  ]);
  const read = (evidence?.columns || [])
    .filter((one) => tableName(one.table) === name)
    .map((one) => one.column);
  const columns = [...new Set([...keys, ...read])];
  const shown = columns.slice(0, MAX_COLUMNS);
  if (columns.length > shown.length) shown.push(`and ${columns.length - shown.length} more`);
  const longest = Math.max(title.length, ...shown.map((one) => one.length), 6);
  return {
    name,
    title,
    columns: shown,
    keys: new Set(keys),
    width: Math.min(longest, MAX_CHARS) * CHAR + 2 * PAD,
    height: (shown.length + 1) * LINE + 2 * PAD,
  };
}

/** Sets x and y: in columns by the number of joins from the best joined table. */
function placed(boxes, edges) {
  const near = (name) =>
    edges.flatMap((e) => (e.from === name ? [e.to] : e.to === name ? [e.from] : []));
  const layer = new Map();
  const byDegree = [...boxes].sort((a, b) => near(b.name).length - near(a.name).length);
  // A chain begins at one of its ends, so that it lies in a row.
  const start = byDegree.filter((one) => near(one.name).length === 1).at(0) || byDegree[0];
  for (const first of [start, ...byDegree]) {
    if (layer.has(first.name)) continue;
    layer.set(first.name, 0);
    const queue = [first.name];
    while (queue.length) {
      const name = queue.shift();
      for (const other of near(name)) {
        if (layer.has(other)) continue;
        layer.set(other, layer.get(name) + 1);
        queue.push(other);
      }
    }
  }
  let x = 4;
  for (let n = 0; n <= Math.max(...layer.values()); n += 1) {
    const column = boxes.filter((one) => layer.get(one.name) === n);
    let y = 4;
    for (const one of column) {
      Object.assign(one, { x, y });
      y += one.height + GAP_Y;
    }
    x += Math.max(...column.map((one) => one.width)) + GAP_X;
  }
}

function drawing(boxes, edges) {
  const width = Math.max(...boxes.map((one) => one.x + one.width)) + 4;
  const height = Math.max(...boxes.map((one) => one.y + one.height)) + 4;
  const names = boxes.map((one) => one.title).join(", ");
  const picture = svg(
    "svg.diagram",
    {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": `Join diagram of ${names}; the list below says the same`,
    },
    edges.filter((edge) => edge.from !== edge.to).map((edge) => line(edge, boxes)),
    boxes.map(drawnBox),
  );
  return el("div.diagram-scroll", { tabindex: "0", role: "group", "aria-label": "Join diagram" }, picture);
}

function drawnBox(one) {
  const texts = [one.title, ...one.columns].map((text, i) =>
    svg(
      i === 0 ? "text.box-title" : one.keys.has(text) ? "text.box-key" : "text.box-column",
      { x: one.x + PAD, y: one.y + PAD + (i + 0.72) * LINE },
      cut(text),
      svg("title", {}, text),
    ),
  );
  return svg(
    "g",
    {},
    svg("rect.box", { x: one.x, y: one.y, width: one.width, height: one.height, rx: 6 }),
    svg("line.box-rule", {
      x1: one.x, x2: one.x + one.width, y1: one.y + PAD + LINE, y2: one.y + PAD + LINE,
    }),
    texts,
  );
}

function line(edge, boxes) {
  const find = (name) => boxes.find((one) => one.name === name);
  let [a, b] = [find(edge.from), find(edge.to)];
  let [aColumn, bColumn] = [edge.left_columns[0], edge.right_columns[0]];
  if (a.x > b.x) [a, b, aColumn, bColumn] = [b, a, bColumn, aColumn];
  const height = (one, column) =>
    one.y + PAD + (Math.max(0, one.columns.indexOf(column)) + 1.5) * LINE;
  const [y1, y2] = [height(a, aColumn), height(b, bColumn)];
  const x1 = a.x + a.width;
  let d;
  if (a.x === b.x) {
    d = `M${x1},${y1} C${x1 + 45},${y1} ${b.x + b.width + 45},${y2} ${b.x + b.width},${y2}`;
  } else {
    const bend = (b.x - x1) / 2;
    d = `M${x1},${y1} C${x1 + bend},${y1} ${b.x - bend},${y2} ${b.x},${y2}`;
  }
  return svg(edge.declared ? "path.join" : "path.join.join-inferred", { d }, svg("title", {}, words(edge)));
}

function list(names, edges) {
  if (names.length === 1) return el("p.faint", {}, foreign(names[0]));
  const lines = edges.map((edge) => el("li", {}, foreign(words(edge))));
  if (!lines.length) lines.push(el("li", {}, foreign(`${names.join(", ")}: no join between them is known`)));
  return el("ul.plain.faint", {}, lines);
}

function words(edge) {
  const side = (name, columns) => `${name} (${columns.join(", ")})`;
  const how = edge.declared ? "declared" : `inferred, ${Math.round(100 * edge.confidence)}% sure`;
  return `${side(edge.from, edge.left_columns)} refers to ${side(edge.to, edge.right_columns)}: ${how}`;
}

function cut(text) {
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS - 1)}…`;
}
