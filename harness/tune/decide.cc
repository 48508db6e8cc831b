#include "harness/tune/decide.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "harness/measure/summary.h"

namespace moegauge {
namespace {

std::string why_none(const CaseRecord& record) {
  const auto& outcome = std::get<Unmeasured>(record.outcome);
  return std::string(to_string(outcome.status)) + ": " + outcome.reason;
}

// Of finalists, that which has the least time, if it wins over all of `holders`.
const CaseRecord* best_winner(const std::vector<CaseRecord>& final, std::size_t first,
                              double min_win) {
  const CaseRecord* best = nullptr;
  for (std::size_t i = first; i < final.size(); ++i) {
    const CaseRecord& candidate = final[i];
    const bool beats_all =
        std::all_of(final.begin(), final.begin() + static_cast<std::ptrdiff_t>(first),
                    [&](const CaseRecord& holder) {
                      return holder.measured() == nullptr || wins(candidate, holder, min_win);
                    });
    if (candidate.measured() == nullptr || !beats_all) continue;
    if (best == nullptr || candidate.measured()->latency.median < best->measured()->latency.median)
      best = &candidate;
  }
  return best;
}

KeyDecision displaced(const KeyPlan& plan, const CaseRecord& by, Config config,
                      std::string reason) {
  return {.tokens = plan.tokens,
          .verdict = plan.in_base ? KeyVerdict::changed : KeyVerdict::added,
          .config = std::move(config),
          .hash = by.config.hash,
          .reason = std::move(reason),
          .fallback = plan.standard};
}

KeyDecision stays(const KeyPlan& plan, std::string hash, std::string reason) {
  return {.tokens = plan.tokens,
          .verdict = plan.in_base ? KeyVerdict::kept : KeyVerdict::left,
          .config = plan.incumbent.value_or(plan.standard),
          .hash = std::move(hash),
          .reason = std::move(reason)};
}

KeyDecision unfinished(const KeyPlan& plan, std::string reason) {
  return {.tokens = plan.tokens, .verdict = KeyVerdict::unfinished, .reason = std::move(reason)};
}

}  // namespace

std::string_view to_string(KeyVerdict verdict) {
  switch (verdict) {
    case KeyVerdict::added:
      return "added";
    case KeyVerdict::changed:
      return "changed";
    case KeyVerdict::kept:
      return "kept";
    case KeyVerdict::left:
      return "left";
    case KeyVerdict::unfinished:
      return "unfinished";
  }
  throw std::logic_error("verdict out of range");
}

bool wins(const CaseRecord& challenger, const CaseRecord& holder, double min_win) {
  if (challenger.measured() == nullptr || holder.measured() == nullptr) return false;
  const LatencySummary& a = holder.measured()->latency;
  const LatencySummary& b = challenger.measured()->latency;
  if (a.samples.size() != b.samples.size() || a.samples.size() < 2) return false;
  if (a.min <= 0 || b.min <= 0) return false;
  const PairedRatio ratio = paired_ratio(a.samples, b.samples);
  return ratio.low > 1 && ratio.ratio * (1 - min_win) >= 1;
}

KeyDecision decide(const KeyPlan& plan, const KeyFindings& findings, double min_win) {
  if (!findings.complete) return unfinished(plan, "the run ended before");
  const std::vector<CaseRecord>& final = findings.final;
  if (final.empty()) return stays(plan, "", "no candidate looked faster than the default");
  const CaseRecord& standard = final.front();
  if (standard.measured() == nullptr) {
    return unfinished(plan, "the default is " + why_none(standard));
  }
  const std::size_t first = plan.incumbent ? 2 : 1;
  if (const CaseRecord* best = best_winner(final, first, min_win)) {
    const ConfigRequest request = parse_config_request(best->coordinates.config, best->id());
    KeyDecision decision = displaced(plan, *best, request.config, "a candidate wins");
    if (plan.incumbent && final[1].measured() != nullptr && !wins(standard, final[1], min_win)) {
      decision.fallback = *plan.incumbent;
      decision.fallback_is_default = false;
    }
    return decision;
  }
  if (!plan.incumbent) return stays(plan, standard.config.hash, "no candidate wins");
  const CaseRecord& incumbent = final[1];
  if (incumbent.measured() == nullptr) {
    return displaced(plan, standard, plan.standard,
                     "what --base has here is " + why_none(incumbent) + "; back to the default");
  }
  if (wins(standard, incumbent, min_win)) {
    return displaced(plan, standard, plan.standard, "the default wins over what --base has here");
  }
  return stays(plan, incumbent.config.hash, "nothing wins over what --base has here");
}

ConfigTable merged(ConfigTable base, std::vector<KeyDecision>& decisions,
                   const WholeConfig& whole) {
  ConfigTable table = std::move(base);
  for (const KeyDecision& d : decisions) {
    if (d.verdict == KeyVerdict::added || d.verdict == KeyVerdict::changed) {
      table.entries[d.tokens] = d.config;
    }
  }
  // An entry that is put in for one key may take over another's lookup: until nothing changes.
  for (bool changed = !table.entries.empty(); changed;) {
    changed = false;
    for (KeyDecision& d : decisions) {
      if (d.verdict != KeyVerdict::left) continue;
      const ConfigChoice found = choose(table, d.tokens);
      if (whole(found.config, d.tokens) == whole(d.config, d.tokens)) continue;
      d.verdict = KeyVerdict::added;
      d.reason += "; lookup would use the entry of M = " + std::to_string(found.key);
      table.entries[d.tokens] = d.config;
      changed = true;
    }
  }
  return table;
}

std::vector<std::int64_t> between_keys(const ConfigTable& table,
                                       const std::vector<KeyDecision>& decisions,
                                       const std::function<Config(std::int64_t)>& standard,
                                       const WholeConfig& whole) {
  std::set<std::int64_t> ours;
  for (const KeyDecision& d : decisions) {
    if (d.verdict == KeyVerdict::added || d.verdict == KeyVerdict::changed) ours.insert(d.tokens);
  }
  std::vector<std::int64_t> found;
  for (auto at = table.entries.begin(); at != table.entries.end(); ++at) {
    const auto next = std::next(at);
    if (next == table.entries.end()) break;
    const std::int64_t low = at->first, high = next->first;
    if (!ours.contains(low) && !ours.contains(high)) continue;
    const std::int64_t last_of_low = low + (high - low) / 2;
    for (const std::int64_t tokens : {last_of_low, last_of_low + 1}) {
      if (tokens <= low || tokens >= high) continue;
      const Config used = choose(table, tokens).config;
      if (whole(used, tokens) != whole(standard(tokens), tokens)) found.push_back(tokens);
    }
  }
  return found;
}

}  // namespace moegauge
