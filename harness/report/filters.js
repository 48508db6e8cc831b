"use strict";
// What is selected lives in the address after "#", so that a link shows the same view:
// model=a&model=b&scheme=c, beside each chart's own choices.

const dimensions = [
  ["model", "model"], ["scheme", "scheme"], ["backend", "backend"], ["config", "config"], ["layer", "tp / ep"],
  ["op", "op"], ["routing", "routing"], ["inputs", "inputs"], ["cache", "cache"], ["launch", "launch"],
  ["device", "device"], ["status", "status"], ["file", "file"],
];

let view = new URLSearchParams(location.hash.slice(1));
let changed = () => {};

function set_view(key, values) {
  view.delete(key);
  for (const value of values) view.append(key, value);
  history.replaceState(null, "", "#" + view.toString());
  changed();
}

window.addEventListener("hashchange", () => {
  view = new URLSearchParams(location.hash.slice(1));
  changed();
});

// Rows of a table that the filters let through. A table without the field, or a row, is not asked:
// status means nothing to a pair.
function filtered(rows) {
  const asked = dimensions.map(([field]) => [field, new Set(view.getAll(field))]).filter(([, values]) => values.size > 0);
  if (asked.length === 0) return rows;
  return rows.filter((row) => asked.every(([field, values]) => row[field] === undefined || values.has(row[field])));
}

function filter_box(field, label, counts) {
  const chosen = new Set(view.getAll(field));
  const boxes = [...counts].map(([value, count]) => element("label", {},
    element("input", {
      type: "checkbox", name: field, value, checked: chosen.has(value),
      onchange: (event) => {
        const next = new Set(view.getAll(field));
        if (event.target.checked) next.add(value); else next.delete(value);
        set_view(field, next);
      },
    }), element("span", {}, value === "" ? "(none)" : value), element("span", { class: "count" }, String(count))));
  return element("details", { class: "filter", "data-field": field }, element("summary", {}, label),
    element("fieldset", {}, element("legend", {}, label), ...boxes));
}

function build_filters(form) {
  for (const [field, label] of dimensions) {
    const counts = new Map();
    for (const row of [...tables.cases, ...tables.end_to_end]) if (row[field] !== undefined) counts.set(row[field], (counts.get(row[field]) ?? 0) + 1);
    if (counts.size > 1) form.append(filter_box(field, label, counts));
  }
  form.append(element("button", {
    type: "button", id: "clear", onclick: () => {
      for (const [field] of dimensions) view.delete(field);
      set_view("", []);
    },
  }, "clear"), element("span", { id: "shown", role: "status" }));
  form.addEventListener("submit", (event) => event.preventDefault());
  // One open at a time; Escape and a click elsewhere close it.
  document.addEventListener("click", (event) => {
    for (const open of form.querySelectorAll("details[open]")) if (!open.contains(event.target)) open.open = false;
  });
  form.addEventListener("keydown", (event) => {
    const open = event.target.closest("details[open]");
    if (event.key !== "Escape" || !open) return;
    open.open = false;
    open.querySelector("summary").focus();
  });
}

function show_filters(form, shown) {
  let any = false;
  for (const box of form.querySelectorAll(".filter")) {
    const chosen = view.getAll(box.dataset.field);
    const label = dimensions.find(([field]) => field === box.dataset.field)[1];
    box.classList.toggle("on", chosen.length > 0);
    any ||= chosen.length > 0;
    box.querySelector("summary").textContent =
      chosen.length === 0 ? label : label + ": " + (chosen.length > 2 ? chosen.length + " chosen" : chosen.join(", "));
    for (const input of box.querySelectorAll("input")) input.checked = chosen.includes(input.value);
  }
  form.querySelector("#clear").hidden = !any;
  const count = (some, all, what) => (all === 0 ? [] : [some.toLocaleString("en-US") + " of " + all.toLocaleString("en-US") + " " + what]);
  form.querySelector("#shown").textContent = [...count(shown, tables.cases.length, "cases"),
    ...count(filtered(tables.end_to_end).length, tables.end_to_end.length, "numbers of serving and scores")].join(", ");
}
