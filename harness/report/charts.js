"use strict";
// Draws the Vega-Lite files under charts/. What a chart is lies in its file; here are only the theme,
// the width, which rows it gets, and when it is drawn: not before it comes near the screen.

const most_panels = 12;
const most_places = 60;  // lines of a wide chart's panel

// Okabe and Ito, ordered so that neighbours differ in lightness too; lighter ones on a dark ground.
const palettes = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a67c00", "#56b4e9", "#444444", "#7b4ea3"],
  dark: ["#56b4e9", "#ff8c42", "#2fc795", "#e59ac4", "#f0e442", "#7f9cff", "#d0d0d0", "#b78ae0"],
};
const shapes = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"];
// From losing to winning.
const ranges = {
  light: ["#f08a4b", "#f6b587", "#fbdcc4", "#f1f2f4", "#d3e6f5", "#9dcbee", "#5ba8e0"],
  dark: ["#b3470f", "#7d3a1a", "#55301f", "#2a3038", "#1f4059", "#205d88", "#1f7ab8"],
};

const dark = () => document.documentElement.dataset.theme === "dark";
const style_value = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function theme_config() {
  const [ink, faint, line] = ["--ink", "--faint", "--line"].map(style_value);
  const font = getComputedStyle(document.body).fontFamily;
  return {
    background: null, font, padding: 4,
    view: { stroke: line, cornerRadius: 3 },
    axis: { labelColor: faint, titleColor: faint, gridColor: line, gridOpacity: 0.7, domainColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelOverlap: "greedy" },
    header: { labelColor: ink, labelFontSize: 13, labelFontWeight: 600, labelPadding: 6, labelAnchor: "start" },
    legend: { labelColor: ink, titleColor: faint, orient: "bottom", direction: "horizontal", labelLimit: 360, labelFontSize: 12, symbolLimit: 60, symbolSize: 80, symbolOpacity: 1, symbolBaseFillColor: ink, symbolBaseStrokeColor: ink, columns: 3 },
    text: { color: ink }, range: { category: palettes[dark() ? "dark" : "light"], diverging: ranges[dark() ? "dark" : "light"] },
    style: { limit: { color: faint }, band: { color: faint } },
  };
}

// Every encoding of a specification, whatever it is nested in.
function* encodings(spec) {
  if (spec.encoding) yield spec.encoding;
  for (const inner of [...(spec.layer ?? []), ...(spec.spec ? [spec.spec] : [])]) yield* encodings(inner);
}

// A layer named if_FIELD is of rows that have the field; without any it has no place in a scale.
function drop_empty_layers(spec, rows) {
  const has = (layer) => !layer.name?.startsWith("if_") || rows.some((row) => row[layer.name.slice(3)] !== undefined);
  if (spec.layer) spec.layer = spec.layer.filter(has);
}

// Backend and config have the same colour in every chart, whatever rows it begins with.
const in_case_order = (field) => (field === "rival" ? tables.cases.map((row) => ({ rival: row.backend + " · " + row.config })) : []);

// A value keeps its colour and shape when others are filtered away.
function fix_scales(spec, all, rows) {
  const palette = palettes[dark() ? "dark" : "light"];
  for (const encoding of encodings(spec)) {
    for (const [channel, range] of [["color", palette], ["shape", shapes]]) {
      const what = encoding[channel];
      if (!what || !what.field || what.type !== "nominal" || what.scale) continue;
      const known = distinct([...in_case_order(what.field), ...all], what.field);
      const domain = known.filter((value) => rows.some((row) => row[what.field] === value));
      if (domain.length > 0) what.scale = { domain, range: domain.map((value) => range[known.indexOf(value) % range.length]) };
    }
  }
}

// Batch sizes that were measured, instead of round numbers between them.
function tick_at_tokens(spec, rows) {
  const values = distinct(rows, "tokens").sort((a, b) => a - b);
  for (const encoding of encodings(spec)) {
    if (encoding.x?.field === "tokens" && encoding.x.type === "quantitative") encoding.x.axis.values = values;
  }
}

// Series of different devices, caches or clocks in one panel; clocks at one batch size, since a device
// that works harder clocks lower.
function mixtures(rows, facet, x) {
  const panels = new Map(), clocks = new Map();
  for (const row of rows) {
    const panel = panels.get(row[facet]) ?? { device: new Set(), cache: new Set() };
    if (row.device) panel.device.add(row.device);
    if (row.cache) panel.cache.add(row.cache);
    panels.set(row[facet], panel);
    if (!row.clock) continue;
    const point = row[facet] + "\n" + row[x];
    const [least, most] = clocks.get(point) ?? [row.clock, row.clock];
    clocks.set(point, [Math.min(least, row.clock), Math.max(most, row.clock)]);
  }
  const found = { devices: new Set(), "cache modes": new Set() };
  for (const panel of panels.values()) {
    if (panel.device.size > 1) panel.device.forEach((value) => found.devices.add(value));
    if (panel.cache.size > 1) panel.cache.forEach((value) => found["cache modes"].add(value));
  }
  const notes = Object.entries(found).filter(([, values]) => values.size > 0)
    .map(([what, values]) => `Different ${what} stand in one chart (${[...values].sort().join(", ")}): that is not a before/after comparison.`);
  const apart = [...clocks].filter(([, [least, most]]) => most > 1.02 * least).sort(([, a], [, b]) => b[1] / b[0] - a[1] / a[0]);
  if (apart.length > 0) {
    const [point, [least, most]] = apart[0];
    notes.push(`Different clocks stand in one chart (${least} and ${most} MHz, ${point.replace("\n", `, ${x} `)}` +
      (apart.length > 1 ? `; ${apart.length - 1} more points` : "") + "): that is not a before/after comparison.");
  }
  return notes;
}

// Whether a chart draws something of a row. A call of no tokens takes no time: no chart has a place for it.
const has_place = (about, row) => [about.needs].flat().every((field) => row[field] !== undefined) &&
  (about.op ?? row.op) === row.op && row.tokens !== 0;

// What a chart is made from, after filters and its own choice.
function chart_rows(chart) {
  const about = chart.spec.usermeta;
  const all = tables[chart.spec.data.name];
  let rows = filtered(all).filter((row) => has_place(about, row));
  let choices = [], chosen;
  if (about.several) rows = with_several(rows, about.facet, about.several);
  if (about.choose) {
    choices = distinct(rows, about.choose).filter((value) => value !== 0).sort((a, b) => a - b);
    const asked = Number(view.get(chart.name + "." + about.choose));
    chosen = choices.includes(asked) ? asked : choices[Math.floor((choices.length - 1) / 2)];
    rows = rows.filter((row) => row[about.choose] === chosen);
  }
  const panels = distinct(rows, about.facet);
  const everything = view.getAll("all").includes(chart.name);
  const shown = everything ? panels : panels.slice(0, most_panels);
  const kept = new Set(shown);
  rows = rows.filter((row) => kept.has(row[about.facet]));
  const lines = about.wide ? distinct(rows, place_of(chart)).length : 0;
  if (lines > most_places && !everything) rows = worst_places(rows, place_of(chart), about.worst);
  return { all, rows, panels, shown, lines, choices, chosen };
}

const place_of = (chart) => chart.spec.spec.encoding.y.field;

// Lines of a wide chart in the order in which they stand, but only the worst: losers must be seen.
function worst_places(rows, place, field) {
  const least = new Map();
  for (const row of rows) least.set(row[place], Math.min(least.get(row[place]) ?? Infinity, row[field]));
  const kept = new Set([...least].sort(([, a], [, b]) => a - b).slice(0, most_places).map(([name]) => name));
  return rows.filter((row) => kept.has(row[place]));
}

// Only panels in which `field` takes more than one value: a comparison needs two.
function with_several(rows, facet, field) {
  const values = new Map();
  for (const row of rows) values.set(row[facet], (values.get(row[facet]) ?? new Set()).add(row[field]));
  return rows.filter((row) => values.get(row[facet]).size > 1);
}

const ruler = document.createElement("canvas").getContext("2d");
function text_width(text, size) {
  ruler.font = size + "px " + getComputedStyle(document.body).fontFamily;
  return ruler.measureText(text).width;
}

// A word that is too long for any line, in pieces, after a mark where there is one.
function* pieces_of(word, size, most) {
  let rest = word;
  while (rest.length > 1 && text_width(rest, size) > most) {
    let length = Math.max(1, Math.floor(rest.length * most / text_width(rest, size)));
    const mark = Math.max(...["/", "-", "_", "="].map((one) => rest.lastIndexOf(one, length - 1))) + 1;
    if (mark > length / 2) length = mark;
    yield rest.slice(0, length);
    rest = rest.slice(length);
  }
  yield rest;
}

// A name on as many lines as it needs to be no wider than `most`, broken after its separators.
function lines_of(name, between, size, most) {
  const lines = [];
  for (const part of name.split(between)) {
    const longer = lines.length > 0 ? lines[lines.length - 1] + between + part : part;
    if (lines.length > 0 && text_width(longer, size) <= most) lines[lines.length - 1] = longer;
    else lines.push(...pieces_of(part, size, most));
  }
  return lines;
}

// Vega's formulas end a line, and with it a text, at two characters that JSON leaves as they are.
const expression_text = (value) => JSON.stringify(value).replace(/[\u2028\u2029]/g, (end) => "\\u" + end.charCodeAt(0).toString(16));

// Puts names of an axis, of panels or of a legend on lines; returns how many the longest has and how wide
// they are. Shorter ones stand in the middle.
function wrap_names(target, names, between, size, most, middle) {
  const wrapped = names.map((name) => [name, lines_of(String(name), between, size, most)]);
  const lines = Math.max(1, ...wrapped.map(([, parts]) => parts.length));
  const width = Math.ceil(Math.max(0, ...wrapped.flatMap(([, parts]) => parts.map((part) => text_width(part, size)))));
  if (middle) for (const [, parts] of wrapped) for (let i = (lines - parts.length) >> 1; i > 0; --i) parts.unshift("");
  if (lines > 1) target.labelExpr = expression_text(Object.fromEntries(wrapped)) + "[datum.label]";
  target.labelFontSize = size;
  return { lines, width };
}

// Names beside a wide chart are whole.
function fit_names(spec, rows, width) {
  const inner = spec.spec, axis = inner.encoding.y.axis;
  const size = width < 600 ? 11 : 12, most = width * (width < 600 ? 0.42 : 0.4);
  const names = wrap_names(axis, distinct(rows, inner.encoding.y.field), spec.usermeta.between, size, most, true);
  axis.labelLineHeight = size + 2;
  axis.labelOffset = -(names.lines - 1) * (size + 2) / 2;
  axis.labelLimit = Math.min(names.width, most) + 4;
  inner.height = { step: Math.max(inner.height.step, (size + 2) * names.lines + 8) };
  return axis.labelLimit + 26;
}

function wrap_legends(spec, rows, most) {
  for (const encoding of encodings(spec)) {
    for (const channel of ["color", "shape"]) {
      const what = encoding[channel];
      if (what?.field && what.type === "nominal") wrap_names(what.legend ??= {}, distinct(rows, what.field), " · ", 12, most);
    }
  }
}

function sized_spec(chart, made, width) {
  const spec = structuredClone(chart.spec);
  const about = spec.usermeta;
  const inner = spec.spec;
  const labels = about.wide ? fit_names(spec, made.rows, width) : 75;
  const columns = about.wide ? 1 : Math.max(1, Math.min(made.shown.length, Math.floor((width + 20) / 440)));
  spec.columns = columns;
  inner.width = Math.max(180, Math.floor((width - 12) / columns - labels));
  const ticks = about.wide ? distinct(made.rows, "tokens").length : 0;
  if (ticks > 0) inner.width = Math.max(Math.min(inner.width, 64 * ticks), 40 * ticks);
  spec.facet.header = { labelLimit: inner.width + 60 };
  wrap_names(spec.facet.header, made.shown, " · ", 13, inner.width * 0.92);
  // In the order of the rows; by itself Vega-Lite sorts panels by their letters. Not by a list of names: it
  // would write those into a formula.
  spec.facet.sort = { field: "panel_at", op: "min" };
  spec.datasets = { [spec.data.name]: made.rows.map((row) => ({ ...row, panel_at: made.shown.indexOf(row[about.facet]) })) };
  drop_empty_layers(inner, made.rows);
  fix_scales(spec, made.all, made.rows);
  tick_at_tokens(spec, made.rows);
  const config = theme_config();
  if (width < 600) {
    config.legend.columns = 1;
    config.legend.labelLimit = width - 90;
    wrap_legends(inner, made.rows, width - 95);
  }
  spec.config = config;
  return spec;
}

// What a point tells: only what it has. `sanitize` makes text of what might be a tag.
function tooltip_html(value, sanitize) {
  if (typeof value !== "object" || value === null) return sanitize(String(value));
  const told = Object.entries(value).filter(([, text]) => !["NaN", "undefined", "null", ""].includes(String(text)));
  return "<table>" + told.map(([key, text]) => `<tr><td class="key">${sanitize(key)}</td><td class="value">${sanitize(String(text))}</td></tr>`).join("") + "</table>";
}

async function draw_chart(chart) {
  chart.stale = false;
  const made = chart_rows(chart);
  const box = chart.section;
  const drawing = box.querySelector(".drawing");
  chart.view?.finalize();
  chart.view = null;
  drawing.replaceChildren();
  const width = drawing.clientWidth || 320;
  chart.drawn_at = width;
  try {
    const result = await vegaEmbed(drawing.appendChild(element("div")), sized_spec(chart, made, width), {
      renderer: "svg", actions: { export: true, source: false, compiled: false, editor: false },
      logLevel: 1, downloadFileName: "moegauge-" + chart.name, tooltip: { theme: dark() ? "dark" : "light", formatTooltip: tooltip_html },
    });
    if (chart.stale) result.finalize(); else chart.view = result;
    performance.mark("drawn");
    const svg = drawing.querySelector("svg");
    if (svg) svg.setAttribute("aria-label", chart.spec.usermeta.title + "; the same numbers stand in the table below");
  } catch (error) {
    drawing.replaceChildren(element("p", { class: "warning" }, "This chart could not be drawn: " + error.message));
    throw error;
  }
}

const near = "IntersectionObserver" in window && new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const chart = chart_list.find((one) => one.section === entry.target);
    chart.visible = entry.isIntersecting;
    if (chart.visible && chart.stale) draw_chart(chart);
  }
}, { rootMargin: "600px" });

function build_chart(chart) {
  const about = chart.spec.usermeta;
  chart.section = element("section", { class: "chart", id: "chart-" + chart.name },
    element("h2", {}, about.title), element("p", { class: "help" }, about.help), element("div", { class: "notes" }),
    element("div", { class: "controls" }), element("div", { class: "drawing", tabindex: "0", role: "group", "aria-label": about.title }),
    element("details", { class: "points", ontoggle: () => show_points(chart) }, element("summary", {}, "The same numbers as a table"), element("div")));
  if (near) near.observe(chart.section);
  return chart.section;
}

// After a change of filters, theme or width. Returns whether the chart has anything to show.
function update_chart(chart) {
  const about = chart.spec.usermeta;
  const made = chart_rows(chart);
  chart.section.hidden = made.rows.length === 0;
  if (chart.section.hidden) return false;
  chart.section.querySelector(".notes").replaceChildren(
    ...mixtures(made.rows, about.facet, chart.spec.spec.encoding.x?.field === "experts" ? "experts" : "tokens").map((text) => element("p", { class: "warning" }, text)));
  const controls = [];
  if (made.choices.length > 1) {
    controls.push(element("label", {}, about.choose + " ", element("select", {
      onchange: (event) => set_view(chart.name + "." + about.choose, [event.target.value]),
    }, ...made.choices.map((value) => element("option", { value, selected: value === made.chosen }, String(value))))));
  } else if (made.choices.length === 1) controls.push(element("span", {}, `${about.choose} ${made.chosen}`));
  const less = [];
  if (made.panels.length > made.shown.length) less.push(`${made.shown.length} of ${made.panels.length} panels`);
  const lines = about.wide ? distinct(made.rows, place_of(chart)).length : 0;
  if (made.lines > lines) less.push(`${lines} of ${made.lines} lines, the worst`);
  if (less.length > 0) {
    controls.push(element("span", {}, less.join(", ") + "; filter, or"), element("button", {
      type: "button", onclick: () => set_view("all", [...view.getAll("all"), chart.name]),
    }, "show all"));
  }
  chart.section.querySelector(".controls").replaceChildren(...controls);
  show_points(chart);
  chart.stale = true;
  if (window.vegaEmbed && (chart.visible || !near)) draw_chart(chart);
  if (!window.vegaEmbed) chart.section.querySelector(".drawing").hidden = true;
  return true;
}
