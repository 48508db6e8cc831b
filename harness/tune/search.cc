#include "harness/tune/search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/measure/summary.h"

namespace moegauge {
namespace {

constexpr std::size_t kFirstBatch = 2;  // small, since nothing is known yet of how long it takes
constexpr std::size_t kKeepOneOf = 3;
constexpr int kFirstRounds = 3;  // of the first rung; each further one has twice as many
// Speed-ups under which a candidate is given up: few rounds may hide a win, more do not.
constexpr double kFirstHope = 0.97, kHope = 1.0;
constexpr double kFirstRungsShare = 0.5, kRungsShare = 0.75;  // of a key's seconds
constexpr std::uint64_t kFinalDraw = 1;

const std::string kFirst = "first ";  // and the number of the batch

std::string tag_of(std::int64_t tokens, const std::string& what) {
  return "M=" + std::to_string(tokens) + " " + what;
}

struct Ranked {
  std::string config;
  double speed_up = 0;  // time of the default over its own
};

StoppingRule rounds_of_rung(int rung) {
  const int rounds = kFirstRounds << std::min(rung, 8);
  // Of so many rounds exactly: an interval that narrow is never met.
  return {.relative_interval = 0,
          .confidence = 0.5,
          .min_rows = 2 * rounds,
          .seconds_per_member = 0,
          .max_rounds = rounds};
}

bool ended(const std::vector<CaseRecord>& records) {
  return std::ranges::any_of(
      records, [](const CaseRecord& record) { return record.status() == Status::skipped; });
}

class Search {
 public:
  Search(const KeyPlan& plan, const SearchSettings& settings, const Laboratory& laboratory)
      : plan_(plan), settings_(settings), laboratory_(laboratory), start_(laboratory.seconds()) {
    findings_.tokens = plan.tokens;
  }

  KeyFindings run() {
    std::vector<Ranked> ranked;
    if (!first_rung(ranked) || !further_rungs(ranked) || !final(ranked)) return findings_;
    findings_.complete = true;
    return findings_;
  }

 private:
  // How many more members can be measured before this share of the key's seconds is over, as long
  // as the last request's took.
  std::size_t affordable(double share) const {
    const double left = share * settings_.seconds_per_key - (laboratory_.seconds() - start_);
    if (left <= 0) return 0;
    return static_cast<std::size_t>(std::min(left / std::max(seconds_per_member_, 1e-6), 1e6));
  }

  // False where nothing further can be measured at this key.
  bool first_rung(std::vector<Ranked>& ranked) {
    const std::vector<Config>& all = plan_.candidates;
    std::size_t size = std::min(kFirstBatch, settings_.batch);
    int number = 0;
    for (std::size_t next = 0; next < all.size(); next += size, ++number) {
      if (number > 0) {
        size = std::min(settings_.batch, affordable(kFirstRungsShare));
        if (size == 0) break;
      }
      size = std::min(size, all.size() - next);
      std::vector<std::string> batch;
      for (std::size_t i = next; i < next + size; ++i) batch.push_back(inline_config(all[i]));
      findings_.tried += size;
      if (!race(kFirst + std::to_string(number), batch, 0, ranked)) return false;
      // Loading weights and computing the truth are in the first, and are no choice's cost.
      if (number == 0) start_ = laboratory_.seconds();
    }
    findings_.untried = all.size() - findings_.tried;
    keep(ranked, kFirstHope);
    return true;
  }

  bool further_rungs(std::vector<Ranked>& ranked) {
    for (int rung = 1; ranked.size() > settings_.finalists; ++rung) {
      const std::size_t most = std::max(affordable(kRungsShare), settings_.finalists);
      ranked.resize(std::min(ranked.size(), most));
      if (most == settings_.finalists) break;
      std::vector<std::string> configs;
      for (const Ranked& candidate : ranked) configs.push_back(candidate.config);
      std::vector<Ranked> again;
      if (!race("rung " + std::to_string(rung), configs, rung, again)) return false;
      ranked = std::move(again);
      keep(ranked, kHope);
    }
    ranked.resize(std::min(ranked.size(), settings_.finalists));
    return true;
  }

  // Without a finalist there is nothing to decide, unless the incumbent may be worse than the
  // default.
  bool final(const std::vector<Ranked>& ranked) {
    if (ranked.empty() && !plan_.incumbent) return true;
    std::vector<std::string> configs = {"default"};
    if (plan_.incumbent) configs.push_back(inline_config(*plan_.incumbent));
    for (const Ranked& candidate : ranked) configs.push_back(candidate.config);
    findings_.final = measure("final", configs, {.stopping = {}, .draw = kFinalDraw});
    const std::size_t candidates_from = plan_.incumbent ? 2 : 1;
    for (std::size_t i = candidates_from; i < findings_.final.size(); ++i) {
      note_dropped(findings_.final[i]);
    }
    return !ended(findings_.final);
  }

  std::vector<CaseRecord> measure(const std::string& what, std::vector<std::string> configs,
                                  PointSettings how) {
    return laboratory_.measure({.tag = tag_of(plan_.tokens, what),
                                .tokens = plan_.tokens,
                                .configs = std::move(configs),
                                .settings = std::move(how)});
  }

  // Measures the configs beside the default and ranks those that have a latency. False where the
  // run ended, or the default has none: then nothing can be said to be faster.
  bool race(const std::string& what, std::vector<std::string> configs, int rung,
            std::vector<Ranked>& ranked) {
    configs.insert(configs.begin(), "default");
    const double before = laboratory_.seconds();
    const auto members = static_cast<double>(configs.size());
    auto records = measure(what, std::move(configs), {.stopping = rounds_of_rung(rung), .draw = 0});
    if (ended(records)) return false;
    seconds_per_member_ = (laboratory_.seconds() - before) / members;
    const Measured* standard = records.front().measured();
    if (standard == nullptr) {
      findings_.final = {std::move(records.front())};
      findings_.complete = true;
      return false;
    }
    for (std::size_t i = 1; i < records.size(); ++i) {
      const Measured* measured = records[i].measured();
      if (measured == nullptr) {
        note_dropped(records[i]);
        continue;
      }
      const auto& a = standard->latency.samples;
      const auto& b = measured->latency.samples;
      if (a.size() != b.size() || a.size() < 2 || measured->latency.min <= 0) continue;
      ranked.push_back({records[i].coordinates.config, paired_ratio(a, b).ratio});
    }
    return true;
  }

  void note_dropped(const CaseRecord& record) {
    if (record.measured() == nullptr && record.status() != Status::skipped) {
      findings_.dropped.push_back(record);
    }
  }

  // The best third, at least as many as there are finalists, of those that there is hope for.
  void keep(std::vector<Ranked>& ranked, double hope) const {
    std::ranges::stable_sort(ranked, std::ranges::greater{}, &Ranked::speed_up);
    const std::size_t third = (ranked.size() + kKeepOneOf - 1) / kKeepOneOf;
    ranked.resize(std::min(ranked.size(), std::max(third, settings_.finalists)));
    std::erase_if(ranked, [&](const Ranked& r) { return r.speed_up < hope; });
  }

  const KeyPlan& plan_;
  const SearchSettings& settings_;
  const Laboratory& laboratory_;
  double start_;
  double seconds_per_member_ = 0;  // of the last request
  KeyFindings findings_;
};

}  // namespace

std::string first_tag(std::int64_t tokens) { return tag_of(tokens, kFirst + "0"); }

KeyFindings search_key(const KeyPlan& plan, const SearchSettings& settings,
                       const Laboratory& laboratory) {
  return Search(plan, settings, laboratory).run();
}

std::size_t records_at_most(const KeyPlan& plan, const SearchSettings& settings) {
  std::size_t left = plan.candidates.size();
  std::size_t records = left + (left + settings.batch - 1) / settings.batch + 1;
  const auto third = [](std::size_t n) { return (n + kKeepOneOf - 1) / kKeepOneOf; };
  left = std::min(left, std::max(third(left), settings.finalists));
  while (left > settings.finalists) {
    records += left + 1;
    left = std::max(third(left), settings.finalists);
  }
  return records + left + (plan.incumbent ? 2 : 1);
}

}  // namespace moegauge
