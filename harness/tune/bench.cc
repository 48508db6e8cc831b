#include "harness/tune/bench.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace moegauge {
namespace {

RunnerHooks journaling(const RunnerHooks& hooks, TuneJournal* journal, const std::string& tag) {
  RunnerHooks own = hooks;
  own.finished = [&hooks, journal, &tag](const CaseRecord& record) {
    if (journal != nullptr) journal->append(tag, record);
    hooks.finished(record);
  };
  return own;
}

std::optional<CaseRecord> known(const TuneJournal* journal, const std::string& tag,
                                const CaseCoordinates& c) {
  const CaseRecord* record = journal == nullptr ? nullptr : journal->find(tag, case_id(c));
  return record == nullptr ? std::nullopt : std::optional(*record);
}

}  // namespace

std::vector<CaseCoordinates> search_cases(const CaseCoordinates& asked,
                                          const std::vector<KeyPlan>& plans) {
  std::vector<CaseCoordinates> cases;
  for (const KeyPlan& plan : plans) {
    const auto add = [&](std::string config) {
      CaseCoordinates c = asked;
      c.tokens = plan.tokens;
      c.config = std::move(config);
      cases.push_back(std::move(c));
    };
    add("default");
    if (plan.incumbent) add(inline_config(*plan.incumbent));
    for (const Config& candidate : plan.candidates) add(inline_config(candidate));
  }
  return cases;
}

TuneBench::TuneBench(std::vector<CaseCoordinates> cases, const RunnerSettings& settings,
                     const RunnerHooks& hooks, TuneJournal* journal)
    : cases_(std::move(cases)),
      journal_(journal),
      records_(cases_.size()),
      own_hooks_(journaling(hooks, journal, tag_)),
      runner_(cases_, records_, settings, own_hooks_) {
  group_.cases.resize(cases_.size());
  std::iota(group_.cases.begin(), group_.cases.end(), std::size_t{0});
  for (std::size_t i = 0; i < cases_.size(); ++i) places_[{cases_[i].tokens, cases_[i].config}] = i;
}

std::size_t TuneBench::index_of(std::int64_t tokens, const std::string& config) const {
  return places_.at({tokens, config});
}

std::vector<CaseRecord> TuneBench::measure(const TuneRequest& request) {
  tag_ = request.tag;
  std::vector<std::size_t> members;
  for (const std::string& config : request.configs) {
    members.push_back(index_of(request.tokens, config));
    records_[members.back()] = known(journal_, tag_, cases_[members.back()]);
  }
  const bool answered = std::ranges::all_of(
      members, [this](std::size_t member) { return records_[member].has_value(); });
  const double before = seconds();
  runner_.run_point(group_, members, request.settings);
  std::vector<CaseRecord> records;
  for (const std::size_t member : members) records.push_back(records_[member].value());
  if (journal_ == nullptr || runner_.stop_reason()) return records;
  if (answered && journal_->seconds(tag_)) {
    replayed_seconds_ += *journal_->seconds(tag_);
  } else {
    journal_->append_seconds(tag_, seconds() - before);
  }
  return records;
}

double TuneBench::seconds() const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count() + replayed_seconds_;
}

void TuneBench::compile_ahead(const KeyPlan& plan) {
  std::vector<std::size_t> members = {index_of(plan.tokens, "default")};
  const std::string id = case_id(cases_[members.front()]);
  if (journal_ != nullptr && journal_->find(first_tag(plan.tokens), id) != nullptr) return;
  for (const Config& candidate : plan.candidates) {
    const std::string config = inline_config(candidate);
    if (compiled_.insert(config).second) members.push_back(index_of(plan.tokens, config));
  }
  runner_.compile_ahead(group_, members);
}

std::vector<CaseRecord> run_journaled(const std::vector<CaseCoordinates>& cases,
                                      const std::string& tag, const RunnerSettings& settings,
                                      const RunnerHooks& hooks, TuneJournal* journal) {
  std::vector<std::optional<CaseRecord>> records;
  for (const CaseCoordinates& c : cases) records.push_back(known(journal, tag, c));
  run_cases(cases, records, settings, journaling(hooks, journal, tag));
  std::vector<CaseRecord> all;
  for (auto& record : records) all.push_back(std::move(record).value());
  return all;
}

}  // namespace moegauge
