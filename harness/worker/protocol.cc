#include "harness/worker/protocol.h"

#include <nlohmann/json.hpp>

#include "harness/result/result_io.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using nlohmann::ordered_json;

constexpr const char* kPipe = "worker pipe";

ordered_json to_json(const CaseCoordinates& c) {
  return {{"op", c.op},         {"model", c.model},     {"scheme", c.scheme},
          {"tp", c.tp},         {"ep", c.ep},           {"backend", c.backend},
          {"config", c.config}, {"routing", c.routing}, {"inputs", c.inputs},
          {"cache", c.cache},   {"launch", c.launch},   {"tokens", c.tokens},
          {"fields", c.fields}, {"layer", c.layer},     {"op_fields", c.op_fields}};
}

CaseCoordinates coordinates_from(const ordered_json& json) {
  CaseCoordinates c;
  json.at("op").get_to(c.op);
  json.at("model").get_to(c.model);
  json.at("scheme").get_to(c.scheme);
  json.at("tp").get_to(c.tp);
  json.at("ep").get_to(c.ep);
  json.at("backend").get_to(c.backend);
  json.at("config").get_to(c.config);
  json.at("routing").get_to(c.routing);
  json.at("inputs").get_to(c.inputs);
  json.at("cache").get_to(c.cache);
  json.at("launch").get_to(c.launch);
  json.at("tokens").get_to(c.tokens);
  json.at("fields").get_to(c.fields);
  json.at("layer").get_to(c.layer);
  json.at("op_fields").get_to(c.op_fields);
  return c;
}

ordered_json to_json(const StoppingRule& rule) {
  return {{"relative_interval", rule.relative_interval},
          {"confidence", rule.confidence},
          {"min_rows", rule.min_rows},
          {"seconds_per_member", rule.seconds_per_member},
          {"max_rounds", rule.max_rounds}};
}

StoppingRule stopping_from(const ordered_json& json) {
  StoppingRule rule;
  json.at("relative_interval").get_to(rule.relative_interval);
  json.at("confidence").get_to(rule.confidence);
  json.at("min_rows").get_to(rule.min_rows);
  json.at("seconds_per_member").get_to(rule.seconds_per_member);
  json.at("max_rounds").get_to(rule.max_rounds);
  return rule;
}

ordered_json to_json(const MeasureSettings& s) {
  ordered_json dumps = ordered_json::array();
  for (const std::filesystem::path& file : s.dumps) dumps.push_back(file.string());
  return {{"seed", s.seed},
          {"row_seconds", s.row_seconds},
          {"max_weight_sets", s.max_weight_sets},
          {"max_weight_bytes", s.max_weight_bytes},
          {"stages", s.stages},
          {"unit_spread", s.unit_spread},
          {"dumps", dumps},
          {"stopping", to_json(s.stopping)}};
}

MeasureSettings settings_from(const ordered_json& json) {
  MeasureSettings s;
  json.at("seed").get_to(s.seed);
  json.at("row_seconds").get_to(s.row_seconds);
  json.at("max_weight_sets").get_to(s.max_weight_sets);
  json.at("max_weight_bytes").get_to(s.max_weight_bytes);
  json.at("stages").get_to(s.stages);
  json.at("unit_spread").get_to(s.unit_spread);
  for (const ordered_json& file : json.at("dumps")) s.dumps.emplace_back(file.get<std::string>());
  s.stopping = stopping_from(json.at("stopping"));
  return s;
}

// Parses a line and reads it with `read`; whatever is wrong is one InputError.
template <typename Read>
auto parsed(std::string_view line, const Read& read) {
  try {
    return read(ordered_json::parse(line));
  } catch (const nlohmann::json::exception& error) {
    throw InputError(kPipe, error.what(), "");
  }
}

}  // namespace

std::string to_line(const Job& job) {
  ordered_json cases = ordered_json::array();
  for (const CaseCoordinates& c : job.cases) cases.push_back(to_json(c));
  return ordered_json{{"cases", std::move(cases)}, {"settings", to_json(job.settings)}}.dump();
}

Job job_from(std::string_view line) {
  return parsed(line, [](const ordered_json& json) {
    Job job;
    for (const ordered_json& c : json.at("cases")) job.cases.push_back(coordinates_from(c));
    job.settings = settings_from(json.at("settings"));
    return job;
  });
}

std::string to_line(const Request& request) {
  ordered_json json = {{"members", request.members},
                       {"compile", request.kind == Request::Kind::compile},
                       {"draw", request.settings.draw}};
  if (request.settings.stopping) json["stopping"] = to_json(*request.settings.stopping);
  return json.dump();
}

Request request_from(std::string_view line) {
  return parsed(line, [](const ordered_json& json) {
    Request request;
    json.at("members").get_to(request.members);
    if (json.at("compile").get<bool>()) request.kind = Request::Kind::compile;
    json.at("draw").get_to(request.settings.draw);
    if (json.contains("stopping")) request.settings.stopping = stopping_from(json["stopping"]);
    return request;
  });
}

std::string to_line(const Reply& reply) {
  if (reply.point_done) {
    return ordered_json{{"point_done", true}, {"tainted", reply.tainted}}.dump();
  }
  // The record's own serialisation, spliced in as the value that it is.
  return "{\"index\":" + std::to_string(reply.index.value()) +
         ",\"launched\":" + (reply.launched ? "true" : "false") +
         ",\"record\":" + case_to_line(reply.record.value()) + "}";
}

Reply reply_from(std::string_view line) {
  return parsed(line, [](const ordered_json& json) {
    Reply reply;
    if (json.contains("point_done")) {
      reply.point_done = true;
      json.at("tainted").get_to(reply.tainted);
      return reply;
    }
    reply.index = json.at("index").get<std::size_t>();
    json.at("launched").get_to(reply.launched);
    reply.record = case_from_json(json.at("record"), kPipe);
    return reply;
  });
}

}  // namespace moegauge
