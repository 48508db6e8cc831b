"use strict";
// Tables that sort by any column, show a page at a time, and copy as Markdown.

const page_rows = 50;

const columns = {
  tokens: { title: "tokens", number: true, text: (row) => String(row.tokens) },
  panel: { title: "layer, scheme", wide: true, head: true },
  point: { title: "point", wide: true, head: true },
  number: { title: "number" },
  variant: { title: "variant" },
  value: { title: "value", number: true, text: (row) => String(row.value) },
  baseline: { title: "baseline", number: true, text: (row) => String(row.baseline ?? "–") },
  stderr: { title: "± standard error", number: true },
  questions: { title: "questions", number: true },
  gain: { title: "gain", number: true, text: (row) => (row.gain === undefined ? "–" : (100 * row.gain).toFixed(Math.abs(row.gain) < 0.01 ? 2 : 1) + "%"), style: (row) => (row.verdict === "fail" ? "bad" : row.verdict === "improved" ? "good" : "") },
  gain_low: { title: "at least", number: true },
  gain_high: { title: "at most", number: true },
  source: { title: "from", wide: true },
  why: { title: "why", wide: true },
  kind: { title: "compared", wide: true },
  place: { title: "layer, scheme", wide: true, head: true },
  series: { title: "series" },
  rival: { title: "series" },
  stage: { title: "stage" },
  scheme: { title: "scheme" },
  file: { title: "file" },
  date: { title: "date" },
  run: { title: "run", number: true, text: (row) => (row.run === undefined ? "" : String(row.run)) },
  commit: { title: "commit" },
  change: { title: "level changed by", style: (row) => (row.change_size > 0 ? "bad" : "good") },
  error_change: { title: "error changed", wide: true },
  failed: { title: "no latency", style: (row) => (row.failed ? "bad" : "") },
  now: { title: "result" },
  anchor: { title: "anchor µs", number: true },
  experts: { title: "experts", number: true },
  status: { title: "status", style: (row) => (row.status === "ok" ? "" : ["skipped", "unsupported", "refused_config"].includes(row.status) ? "open" : "bad") },
  verdict: { title: "verdict", style: (row) => ({ fail: "bad", pass: "", improved: "good" })[row.verdict] ?? "open" },
  median: { title: "median µs", number: true },
  low: { title: "from", number: true },
  high: { title: "to", number: true },
  us: { title: "µs", number: true },
  ratio: { title: "over baseline", number: true, style: (row) => (row.ratio_low > 1 ? "bad" : row.ratio_high < 1 ? "good" : "") },
  over_anchor: { title: "over anchor", number: true, style: (row) => (row.over_anchor > row.limit ? "bad" : row.over_anchor * row.limit < 1 ? "good" : "") },
  floor: { title: "floor µs", number: true },
  fraction: { title: "of floor", number: true, text: (row) => (row.fraction === undefined ? "–" : (100 * row.fraction).toFixed(0) + "%") },
  speedup: { title: "speed-up", number: true, style: (row) => (row.speedup < 0.99 ? "bad" : row.speedup > 1.01 ? "good" : "") },
  base_us: { title: "second µs", number: true },
  rival_us: { title: "first µs", number: true },
  implementation: { title: "implementation", number: true, style: (row) => (row.implementation > row.limit_implementation ? "bad" : "") },
  quantization: { title: "quantization", number: true },
  total: { title: "total", number: true, style: (row) => (row.total > row.limit_total ? "bad" : "") },
  worst_token: { title: "worst token", number: true, style: (row) => (row.worst_token > row.limit_worst_token ? "bad" : "") },
  values: { title: "config", long: true },
  marks: { title: "marks", wide: true },
  reason: { title: "reason", wide: true },
};

const table_columns = {
  cases: ["tokens", "panel", "series", "status", "verdict", "median", "low", "high", "ratio", "fraction", "implementation", "quantization", "total", "worst_token", "marks", "reason", "values"],
  pairs: ["kind", "place", "tokens", "speedup", "low", "high", "base_us", "rival_us"],
  stages: ["panel", "series", "tokens", "stage", "us"],
  history: ["panel", "rival", "date", "run", "commit", "median", "low", "high", "over_anchor", "anchor", "failed", "change", "error_change", "implementation", "total", "now", "values"],
  end_to_end: ["point", "number", "variant", "value", "stderr", "questions", "baseline", "gain", "gain_low", "gain_high", "verdict", "marks", "why", "file", "source"],
  trend: ["panel", "rival", "tokens", "date", "median", "low", "high", "over_anchor", "file"],
};

const cell_text = (name, row) => {
  const column = columns[name];
  if (column.text) return column.text(row);
  return column.number ? short_number(row[name]) : String(row[name] ?? "");
};

function sorted_rows(rows, order) {
  if (!order) return rows;
  const [name, way] = order.split(":");
  const sign = way === "down" ? -1 : 1;
  // What has no value stands last either way.
  return [...rows].sort((a, b) => {
    const x = a[name], y = b[name];
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y)));
  });
}

// Names come from files: none may end a cell or a row, or become a tag.
const markdown_cell = (text) => text.replaceAll("\\", "\\\\").replaceAll("|", "\\|").replaceAll("<", "&lt;").replace(/[\r\n]+/g, " ");

function markdown_table(names, rows) {
  const line = (cells) => "| " + cells.map(markdown_cell).join(" | ") + " |\n";
  return line(names.map((name) => columns[name].title)) + "|" + names.map((name) => (columns[name].number ? "---:|" : "---|")).join("") + "\n" +
    rows.map((row) => line(names.map((name) => cell_text(name, row)))).join("");
}

function table_head(names, key, order) {
  const [by, way] = (order ?? "").split(":");
  return element("thead", {}, element("tr", {}, ...names.map((name) => element("th", {
    class: columns[name].number ? "number" : null, scope: "col", "data-column": name,
    "aria-sort": by !== name ? "none" : way === "down" ? "descending" : "ascending",
  }, element("button", {
    type: "button", onclick: () => set_view("sort." + key, [name + (by === name && way !== "down" ? ":down" : ":up")]),
  }, columns[name].title + (by !== name ? "" : way === "down" ? " ↓" : " ↑")))), element("th", { scope: "col" }, "")));
}

const table_cell = (name, row) => {
  const column = columns[name];
  const kinds = ["number", "wide", "head", "long"].filter((kind) => column[kind]);
  if (row[name] === undefined) kinds.push("none");
  const style = [...kinds, column.style ? column.style(row) : ""].join(" ").trim();
  return element("td", { class: style || null, "data-title": column.title, title: column.number && row[name] !== undefined ? String(row[name]) : null }, cell_text(name, row));
};

// Where nothing was measured the reason stands in place of the numbers.
function table_row(names, row) {
  const from = row.reason !== undefined && row.median === undefined && row.implementation === undefined ? names.indexOf("median") : -1;
  const cells = (from < 0 ? names : names.slice(0, from)).map((name) => table_cell(name, row));
  if (from >= 0) cells.push(element("td", { class: "reason", colspan: names.length - from }, element("div", {}, row.reason)));
  return element("tr", { "data-id": row.id ?? null }, ...cells, element("td", {}, row.repro ? copy_button("repeat", () => row.repro) : null));
}

// `key` names the table in the address.
function show_table(container, key, table, rows) {
  const names = table_columns[table].filter((name) => (name === "file" ? distinct(rows, name).length > 1 : rows.some((row) => row[name] !== undefined)));
  const order = view.get("sort." + key);
  const sorted = sorted_rows(rows, order && names.includes(order.split(":")[0]) ? order : null);
  const pages = Math.max(1, Math.ceil(sorted.length / page_rows));
  let at = Math.min(container.page ?? 0, pages - 1);
  const body = element("tbody");
  const where = element("span");
  const turn = (to) => {
    at = container.page = Math.max(0, Math.min(pages - 1, to));
    body.replaceChildren(...sorted.slice(at * page_rows, (at + 1) * page_rows).map((row) => table_row(names, row)));
    where.textContent = `page ${at + 1} of ${pages}`;
  };
  turn(at);
  const turning = pages > 1 ? [element("button", { type: "button", onclick: () => turn(at - 1) }, "‹ previous"), where, element("button", { type: "button", onclick: () => turn(at + 1) }, "next ›")] : [];
  container.replaceChildren(
    element("div", { class: "pages" }, ...turning, element("span", {}, sorted.length + (sorted.length === 1 ? " row" : " rows")),
      copy_button("copy as Markdown", () => markdown_table(names, sorted))),
    element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "table" }, element("table", {}, table_head(names, key, order), body)));
}

// The table under a chart: without charts it stands open.
function show_points(chart) {
  const details = chart.section.querySelector("details.points");
  if (!window.vegaEmbed) details.open = true;
  if (!details.open) return;
  show_table(details.lastElementChild, chart.name, chart.spec.data.name, chart_rows(chart).rows);
}
