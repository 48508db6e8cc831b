// What a gate forbids: `moegauge.policy/1` files (suites/policies).
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/suite/suite.h"

namespace moegauge {

// Which cases a rule is for. Text fields are patterns (suite/select.h), tokens a closed range.
struct CaseMatch {
  std::string op = "*", scheme = "*", backend = "*", inputs = "*";
  std::int64_t tokens_from = 0;
  std::int64_t tokens_to = std::numeric_limits<std::int64_t>::max();

  bool matches(const CaseCoordinates& c) const;
  bool matches_everything() const;
};

struct LatencyRule {
  CaseMatch match = {};
  // A case fails when its latency is surely more than this many times the baseline's. Above 1.
  double ratio_limit = 1;
  // Relative standard deviation of a case's median from one process to the next, which the samples
  // of one process cannot show. It widens every interval.
  double between_runs = 0;
  // Differences of fewer microseconds neither fail nor count as an improvement: clock resolution.
  double floor_us = 0;
  // Where several processes are compared: smaller changes are none, however sure.
  double floor_ratio = 1.01;
  // What one or two processes must be beyond to fail or improve, since one in fifty may be slow by
  // much for no cause of the kernel's. 1: no more than the limit.
  double outlier_ratio = 1;
};

struct ErrorRule {
  CaseMatch match = {};
  // Absolute limits of error.implementation; none: the limits that ship with the scheme.
  std::optional<double> relative_l2 = {}, worst_token = {};
  // A case fails when an error grows to more than this many times the baseline's and by more than
  // the floor. At least 1.
  double growth_limit = 1;
  double growth_floor = 0;
};

// In place of total_factor and total_applies_above of the limits that ship with the scheme.
struct TotalRule {
  double limit = 0;
  double applies_above = 0;
};

// Serving and accuracy have no coordinates of a case: their rules are by glob on verdict ids, as
// serve/MODEL/input_output=512-512/ttft_ms.mean.
struct IdMatch {
  std::string glob = "*";

  bool matches(const std::string& id) const;
  bool matches_everything() const { return glob == "*"; }
};

struct ServingRule {
  IdMatch match = {};
  // Relative change that passes for noise, in either direction: these are single numbers, whose
  // noise nothing else tells.
  double band = 0.02;
};

struct AccuracyRule {
  IdMatch match = {};
  // A score passes when it is surely no more than this below the baseline's, fails when it surely
  // is.
  double margin = 0.01;
};

// What fails and is known to, until a date: a failure that it covers is none, and once it has
// expired the cases that it is for fail, whatever they do.
struct KnownIssue {
  std::string match = {};     // glob on case ids
  std::string subject = "*";  // glob on what is found: latency, status, error.total, ...
  std::string reason = {};
  std::string expires = {};  // 2026-12-31: the last day on which it holds, in UTC
};

struct Policy {
  std::string name = {};
  std::string description = {};
  double confidence = 0;  // of every interval, in (0.5, 1)
  // Chance that a run of several processes in which nothing changed has any change reported.
  double false_alarms = 0.003;
  bool strict = false;  // inconclusive is "no verdict" (exit 4) instead of allowed
  // The cases are controls, which the change under test does not touch: faster fails too.
  bool controls = false;
  std::vector<KnownIssue> known_issues = {};
  std::optional<TotalRule> total = {};  // none: what ships with the scheme
  // The first rule that matches a case decides; the last of each matches every case.
  std::vector<LatencyRule> latency = {};
  std::vector<ErrorRule> error = {};
  std::vector<ServingRule> serving = {ServingRule{}};
  std::vector<AccuracyRule> accuracy = {AccuracyRule{}};

  const LatencyRule& latency_rule(const CaseCoordinates& c) const;
  const ErrorRule& error_rule(const CaseCoordinates& c) const;
  const ServingRule& serving_rule(const std::string& id) const;
  const AccuracyRule& accuracy_rule(const std::string& id) const;
};

// The policy file that is meant: as given, or NAME of suites/policies/NAME.json under `root`.
// Throws InputError.
std::filesystem::path find_policy(const std::string& name, const std::filesystem::path& root);

// Throw InputError; `where` is the file's name for messages.
Policy load_policy(const std::filesystem::path& file);
Policy policy_from_json(const nlohmann::ordered_json& json, const std::string& where);

}  // namespace moegauge
