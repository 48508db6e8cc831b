"use strict";
// The tables that the page holds, as rows, and how numbers read. Values are those of the result
// files, digit for digit; only what is shown is rounded.

const page_data = JSON.parse(document.getElementById("page-data").textContent);
const chart_list = JSON.parse(document.getElementById("chart-specs").textContent);

// [word, rows, word, ...] as the word of each row.
function unrolled(runs) {
  const at = [];
  for (let i = 0; i < runs.length; i += 2) for (let n = runs[i + 1]; n > 0; --n) at.push(runs[i]);
  return at;
}

// Columns (columns.cc) as rows; a field that a row does not have is absent.
function decode_table(table) {
  const rows = Array.from({ length: table.rows }, () => ({}));
  for (const [name, column] of Object.entries(table.columns)) {
    const at = "runs" in column ? unrolled(column.runs) : column.at;
    const value_of = "all" in column ? () => column.all
      : "words" in column ? (i) => column.words[at[i]]
      : (i) => column.values[i] ?? undefined;
    for (let i = 0; i < rows.length; ++i) {
      const value = value_of(i);
      if (value !== undefined) rows[i][name] = value;
    }
  }
  return rows;
}

const tables = {};
for (const [name, value] of Object.entries(page_data))
  if (value && value.columns) tables[name] = decode_table(value);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Four significant digits, never in powers of ten between 0.001 and 10 million.
function short_number(value) {
  if (value === undefined || value === null) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-3) return value.toExponential(2);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US").replaceAll(",", "\u202f");
  return String(Number(value.toPrecision(4)));
}

function distinct(rows, field) {
  const seen = new Set();
  for (const row of rows) if (row[field] !== undefined && row[field] !== "") seen.add(row[field]);
  return [...seen];
}

async function copy_text(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { readonly: true });
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  const label = button.textContent;
  button.textContent = done ? "copied" : "not copied";
  setTimeout(() => { button.textContent = label; }, 1500);
}

const copy_button = (label, text_of) =>
  element("button", { type: "button", class: "copy", onclick: (event) => copy_text(text_of(), event.currentTarget) }, label);
