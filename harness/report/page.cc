#include "harness/report/page.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/judge/escape.h"
#include "harness/report/embedded.h"
#include "harness/report/summary.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view folder = "harness/report/";
constexpr std::string_view bundle_name = "vega-bundle.js";

// What a page is made of, besides its charts; scripts in the order in which they run.
constexpr std::array scripts = {"data.js", "filters.js", "charts.js", "tables.js", "page.js"};
// A new chart is a file under charts/ and a word here.
constexpr std::array chart_order = {"latency", "speedup", "errors",  "fraction", "stages",
                                    "pareto",  "experts", "history", "trend",    "end_to_end"};

std::string_view part(const std::string& name) {
  for (const report::EmbeddedFile& file : report::embedded_files()) {
    if (file.name == std::string(folder) + name) return file.text;
  }
  throw std::out_of_range("no part " + name + " of the report's page was embedded");
}

// Within a script element only "<" can end it.
std::string script_json(const Json& json) {
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace), safe;
  for (const char c : text) c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

// What the verdict is against; empty where there is none.
const char* against(const ReportInput& input) {
  if (input.baseline) return "the baseline";
  return input.nightly ? "the last runs of the history" : "";
}

Json summary_json(const ReportSummary& summary, const ReportInput& input) {
  Json json = {{"level", summary.level},      {"sentence", summary.sentence},
               {"changes", summary.changes},  {"warnings", summary.warnings},
               {"machines", Json::array()},   {"worst", Json::array()},
               {"policy", input.policy.name}, {"against", against(input)}};
  for (const MachineLine& line : summary.machines) {
    json["machines"].push_back({{"file", line.file},
                                {"devices", line.devices},
                                {"date", line.date},
                                {"host", line.host},
                                {"suite", line.suite},
                                {"version", line.version},
                                {"cases", line.cases},
                                {"rows", line.rows},
                                {"ok", line.ok}});
  }
  for (const WorstCase& worst : summary.worst)
    json["worst"].push_back({{"id", worst.id}, {"why", worst.why}, {"repro", worst.repro}});
  return json;
}

std::string title_of(const ReportInput& input) {
  std::string title = "moegauge";
  for (const ReportFile& file : input.files) title += " · " + file.name;
  return title;
}

void put(std::string& page, std::string_view mark, const std::string& text) {
  const std::string comment = "<!--" + std::string(mark) + "-->";
  const std::size_t at = page.find(comment);
  if (at == std::string::npos) throw std::out_of_range("page.html has no " + comment);
  page.replace(at, comment.size(), text);
}

std::string script(const std::string& text) { return "<script>\n" + text + "\n</script>"; }

std::string data_script(const char* id, const Json& json) {
  return "<script type=\"application/json\" id=\"" + std::string(id) + "\">" + script_json(json) +
         "</script>";
}

// A layer named if_FIELD is of rows that have the field; without any it has no place in a scale.
void drop_empty_layers(Json& spec, const std::vector<Row>& rows) {
  if (!spec.contains("layer")) return;
  Json kept = Json::array();
  for (Json& layer : spec["layer"]) {
    const std::string name = layer.value("name", "");
    if (!name.starts_with("if_") ||
        std::ranges::any_of(rows, [&](const Row& row) { return row.contains(name.substr(3)); })) {
      kept.push_back(std::move(layer));
    }
  }
  spec["layer"] = std::move(kept);
}

// Whether a chart draws something of a row, as charts.js has it. A call of no tokens takes no time:
// no chart has a place for it.
bool has_place(const Json& about, const Row& row) {
  if (about.contains("op") && row.value("op", "") != about["op"]) return false;
  if (row.contains("tokens") && row["tokens"] == 0) return false;
  const Json& needs = about.at("needs");
  if (needs.is_string()) return row.contains(needs.get<std::string>());
  return std::ranges::all_of(
      needs, [&](const Json& field) { return row.contains(field.get<std::string>()); });
}

// Panels in the order of the rows; by itself Vega-Lite sorts them by their letters. Not by a list
// of names: it would write those into a formula, which text from a file could break.
void sort_panels(Json& spec, std::vector<Row>& rows) {
  Json& facet = spec.at("facet");
  const std::string field = facet.at("field");
  std::map<std::string, std::size_t> places;
  for (Row& row : rows)
    row["panel_at"] = places.emplace(row.value(field, ""), places.size()).first->second;
  facet["sort"] = {{"field", "panel_at"}, {"op", "min"}};
}

// With one domain the legends of colour and shape become one.
void name_domains(Json& spec, const std::vector<Row>& rows) {
  for (const char* channel : {"color", "shape"}) {
    Json* const encoding = spec.contains("encoding") ? &spec["encoding"] : nullptr;
    if (encoding == nullptr || !encoding->contains(channel)) continue;
    Json& what = (*encoding)[channel];
    if (!what.is_object() || !what.contains("field") || what.contains("scale")) continue;
    Json domain = Json::array();
    for (const Row& row : rows) {
      const auto found = row.find(what["field"].get<std::string>());
      if (found != row.end() && std::ranges::find(domain, *found) == domain.end())
        domain.push_back(*found);
    }
    what["scale"] = {{"domain", std::move(domain)}};
  }
  if (spec.contains("spec")) name_domains(spec["spec"], rows);
  if (spec.contains("layer")) {
    for (Json& layer : spec["layer"]) name_domains(layer, rows);
  }
}

}  // namespace

std::vector<Chart> all_charts() {
  std::vector<Chart> charts;
  for (const char* name : chart_order)
    charts.push_back({name, std::string(part("charts/" + std::string(name) + ".json"))});
  return charts;
}

std::string_view vega_bundle() {
  for (const report::EmbeddedFile& file : report::embedded_files()) {
    if (std::string_view(file.name).ends_with(bundle_name)) return file.text;
  }
  return {};
}

std::string report_page(const ReportInput& input, const std::vector<Judgement>& judgements,
                        std::string_view bundle) {
  const ReportRows rows = rows_of(input, judgements);
  Json data = {{"summary", summary_json(summary_of(input, judgements), input)}};
  for (const char* table : table_names) data[table] = columns_of(rows.table(table));
  Json charts = Json::array();
  for (const Chart& chart : all_charts())
    charts.push_back({{"name", chart.name}, {"spec", Json::parse(chart.spec)}});

  std::string code;
  for (const char* name : scripts) code += std::string(part(name)) + "\n";
  std::string page(part("page.html"));
  put(page, "title", escape_xml(title_of(input)));
  put(page, "style", "<style>\n" + std::string(part("page.css")) + "</style>");
  put(page, "data", data_script("page-data", data) + "\n" + data_script("chart-specs", charts));
  put(page, "bundle", bundle.empty() ? "" : script(std::string(bundle)));
  put(page, "code", script(code));
  return page;
}

nlohmann::ordered_json chart_with_data(const std::string& chart, const ReportRows& rows) {
  const std::vector<Chart> charts = all_charts();
  const auto found = std::ranges::find(charts, chart, &Chart::name);
  if (found == charts.end()) throw std::out_of_range("no chart " + chart);
  Json spec = Json::parse(found->spec);
  const std::string table = spec.at("data").at("name");
  std::vector<Row> drawn;
  for (const Row& row : rows.table(table)) {
    if (has_place(spec.at("usermeta"), row)) drawn.push_back(row);
  }
  drop_empty_layers(spec.at("spec"), drawn);
  sort_panels(spec, drawn);
  name_domains(spec, drawn);
  spec["datasets"] = {{table, std::move(drawn)}};
  return spec;
}

}  // namespace moegauge
