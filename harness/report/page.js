"use strict";
// Puts the page together: its top, then filters, charts and tables, again after every change.

const summary = page_data.summary;

function build_top() {
  document.getElementById("files").textContent = summary.machines.map((machine) => machine.file).join(" · ");
  const verdict = document.getElementById("verdict");
  verdict.className = summary.level;
  const word = summary.sentence.match(/^[A-Z][A-Z ]+(?=[:;.]|$)/);
  if (word) verdict.append(element("span", { class: "word" }, word[0]), summary.sentence.slice(word[0].length));
  else verdict.textContent = summary.sentence;
  const warnings = [...summary.warnings];
  if (!window.vegaEmbed) warnings.push("No charts: this build of moegauge lacks their JavaScript. Run scripts/setup report and build again. All numbers stand in the tables below.");
  document.getElementById("warnings").append(...warnings.map((text) => element("li", {}, text)));
  build_worst();
  build_machines();
  if (summary.against) {
    document.getElementById("changes").append(element("h3", {}, "Changed since " + summary.against), summary.changes.length === 0
      ? element("p", {}, "Nothing that the files show.") : element("ul", {}, ...summary.changes.map((text) => element("li", {}, text))));
  }
  const versions = [...new Set(summary.machines.map((machine) => machine.version).filter(Boolean))];
  document.getElementById("made").textContent = "moegauge " + versions.join(", ") + ". Policy " + summary.policy +
    ". Latencies are medians with the interval that the run reported; errors are relative L2.";
}

function build_worst() {
  if (summary.worst.length === 0) return;
  document.getElementById("worst").append(element("h3", {}, "Look here first"), element("ol", {}, ...summary.worst.map((worst) =>
    element("li", {}, element("code", {}, worst.id), element("div", { class: "why" }, worst.why),
      worst.repro ? element("div", { class: "repro" }, element("code", {}, worst.repro), copy_button("copy", () => worst.repro)) : null))));
}

function build_machines() {
  const lines = [];
  for (const machine of summary.machines) {
    lines.push(element("dt", {}, machine.file), element("dd", {}, machine.devices || "no device named"));
    const facts = [machine.suite && "suite " + machine.suite, machine.host && "host " + machine.host, machine.date.replace("T", " ").slice(0, 16),
      machine.cases > 0 && machine.ok + " of " + machine.cases + " ok", machine.rows > 0 && machine.rows + " serving and accuracy rows"].filter(Boolean).join(", ");
    lines.push(element("dd", { class: "why" }, facts));
  }
  document.getElementById("machines").append(element("h3", {}, "Machine"), element("dl", {}, ...lines));
}

function update() {
  const form = document.getElementById("filters");
  const rows = filtered(tables.cases);
  show_filters(form, rows.length);
  const contents = [];
  for (const chart of chart_list) {
    if (update_chart(chart)) contents.push(chart);
  }
  document.getElementById("contents").replaceChildren(...contents.map((chart) => element("a", {
    href: "#", onclick: (event) => {
      event.preventDefault();
      chart.section.scrollIntoView();
    },
  }, chart.spec.usermeta.title)));
  show_table(document.getElementById("case-table"), "cases", "cases", rows);
  const served = filtered(tables.end_to_end);
  document.getElementById("all-end-to-end").hidden = served.length === 0;
  if (served.length > 0) show_table(document.getElementById("end-to-end-table"), "end_to_end", "end_to_end", served);
  document.getElementById("all-cases").hidden = tables.cases.length === 0;
  if (document.documentElement.dataset.ready !== "true") performance.mark("ready");
  document.documentElement.dataset.ready = "true";
}

function set_theme(theme) {
  document.documentElement.dataset.theme = theme;
}

function start() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => set_theme(view.get("theme") ?? (system.matches ? "dark" : "light"));
  follow();
  system.addEventListener("change", () => { follow(); update(); });
  document.getElementById("theme").addEventListener("click", () => set_view("theme", [dark() ? "light" : "dark"]));
  document.querySelector("[data-skip]").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("charts-start").focus();
  });
  build_top();
  build_filters(document.getElementById("filters"));
  document.getElementById("charts").append(...chart_list.map(build_chart));
  changed = () => { follow(); update(); };
  update();
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      for (const chart of chart_list) {
        const width = chart.section.querySelector(".drawing").clientWidth;
        if (!chart.section.hidden && chart.drawn_at && Math.abs(width - chart.drawn_at) > 8) {
          chart.stale = true;
          if (chart.visible && window.vegaEmbed) draw_chart(chart);
        }
      }
    }, 150);
  });
  // Paper is light, and shows everything.
  addEventListener("beforeprint", () => {
    const was_dark = dark();
    set_theme("light");
    if (window.vegaEmbed) for (const chart of chart_list) if (!chart.section.hidden && (chart.stale || was_dark)) draw_chart(chart);
  });
  addEventListener("afterprint", () => {
    follow();
    if (dark()) update();
  });
}

start();
