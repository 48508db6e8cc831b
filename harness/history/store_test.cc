#include "harness/history/store.h"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "harness/history/families.h"
#include "harness/history/history_testing.h"
#include "harness/history/trend.h"
#include "harness/testing/command.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class History : public HistoryFile {
 protected:
  std::string refusal(const std::function<void()>& doing) const {
    try {
      doing();
    } catch (const InputError& error) {
      return error.what();
    }
    return "done";
  }
  std::string refusal_to_open(HistoryAccess access = HistoryAccess::existing) const {
    return refusal([&] { open(access); });
  }
  void write(const std::string& bytes) const { std::ofstream(file_, std::ios::binary) << bytes; }
  std::string bytes() const { return read_file(file_); }
  void execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  // All that it says of its cases, as JSON.
  std::string everything() const {
    const auto store = open();
    const auto runs = store->runs();
    std::string text;
    for (const Trend& trend : trends(*store, runs, "*", "*", {})) {
      text += trend_json(trend, runs).dump();
    }
    for (const HistoryAnchor& anchor : store->anchors()) text += anchor.reason + anchor.who;
    return text;
  }
};

TEST_F(History, KeepsWhatIsComparedOfACase) {
  Result result = night(0);
  Measured& measured = std::get<Measured>(result.cases[1].outcome);
  measured.unstable = true;
  EXPECT_EQ(add(result).run, 1);
  const auto store = open();
  const auto series = store->series();
  ASSERT_THAT(series, SizeIs(3));
  EXPECT_EQ(series[1].case_id, result.cases[1].id());
  EXPECT_EQ(series[1].device, "fake device");
  const auto points = store->points(series[1], 10);
  ASSERT_THAT(points, SizeIs(1));
  const HistoryPoint& p = points[0];
  EXPECT_EQ(p.run, 1);
  EXPECT_EQ(p.time, first_night);
  EXPECT_EQ(p.status, Status::ok);
  EXPECT_TRUE(p.unstable);
  EXPECT_FALSE(p.suspect);
  EXPECT_EQ(p.kernel, "0123456789abcdef");
  EXPECT_EQ(p.median, measured.latency.median);
  EXPECT_EQ(p.ci_low, measured.latency.ci_low);
  EXPECT_EQ(p.ci_high, measured.latency.ci_high);
  EXPECT_NEAR(p.centre, measured.latency.median, 1e-9) << "samples lie evenly about it";
  EXPECT_GT(p.within, 0);
  EXPECT_EQ(p.errors.implementation, 0.001);
  EXPECT_EQ(p.errors.worst_implementation, 0.002);
  EXPECT_EQ(p.errors.quantization, 0.004);
  EXPECT_EQ(p.errors.worst_quantization, 0.006);
  EXPECT_EQ(p.errors.total, 0.0041);
  EXPECT_EQ(p.errors.worst_total, 0.0062);
}

TEST_F(History, GivesBackARecordThatMeansTheSame) {
  const Result result = night(0);
  add(result);
  const auto store = open();
  const auto point = store->points(store->series()[2], 1)[0];
  const CaseRecord record = record_from(point, read_variant(store->variant(point.variant)));
  const CaseRecord& original = result.cases[2];
  EXPECT_EQ(record.id(), original.id());
  EXPECT_EQ(record.device, original.device);
  EXPECT_EQ(record.seed, original.seed);
  EXPECT_EQ(record.config.hash, original.config.hash);
  EXPECT_EQ(record.config.values, original.config.values);
  EXPECT_EQ(record.measured()->latency.median, original.measured()->latency.median);
  EXPECT_EQ(record.measured()->check.executed_scheme, "bf16");
  EXPECT_EQ(record.measured()->check.error.total.worst_token, 0.0062);
}

TEST_F(History, KeepsStatusAndInfiniteErrorsOfWhatIsNotOk) {
  add(night(0, [](Result& result) {
    result.cases[0].outcome = Unmeasured{.status = Status::crashed, .reason = "signal 11"};
    CheckResult check = result.cases[1].measured()->check;
    check.error.total.relative_l2 = HUGE_VAL;
    result.cases[1].outcome =
        Unmeasured{.status = Status::inaccurate, .reason = "too large", .check = check};
  }));
  const auto store = open();
  const auto series = store->series();
  const HistoryPoint crashed = store->points(series[0], 1)[0];
  EXPECT_EQ(crashed.status, Status::crashed);
  EXPECT_TRUE(std::isnan(crashed.median) && std::isnan(crashed.errors.total));
  const HistoryPoint inaccurate = store->points(series[1], 1)[0];
  EXPECT_EQ(inaccurate.status, Status::inaccurate);
  EXPECT_TRUE(std::isinf(inaccurate.errors.total));
  EXPECT_EQ(store->runs()[0].ok_cases, 1);
}

TEST_F(History, TakesTheSameMeasurementsOnce) {
  EXPECT_FALSE(add(night(0)).already);
  const auto again = add(night(0));
  EXPECT_TRUE(again.already);
  EXPECT_EQ(again.run, 1);
  // Where the file was is no part of what was measured.
  EXPECT_TRUE(add(night(0, [](Result& result) {
                result.cases[0].repro = "moegauge run elsewhere/suite.json";
                result.context.emplace_back("suite_file", "elsewhere/suite.json");
              })).already);
  EXPECT_FALSE(add(night(0, [](Result& result) { scale_latency(result.cases[0], 1.01); })).already);
  EXPECT_THAT(open()->runs(), SizeIs(2));
}

TEST_F(History, IsInTheOrderOfCommitsWhateverTheOrderOfFiles) {
  for (const int number : {5, 1, 3}) add(night(number));
  // Committed first, by a clock in another zone, and measured last.
  add(night(9, [](Result& result) { result.context[3].second = "2026-09-21T02:00:00+12:00"; }));
  const auto store = open();
  std::vector<std::string> commits;
  for (const HistoryRun& run : store->runs()) commits.push_back(run.commit);
  EXPECT_THAT(commits, ElementsAre("commit-9", "commit-1", "commit-3", "commit-5"));
  std::vector<std::int64_t> of_points;
  for (const auto& p : store->points(store->series()[0], 10)) of_points.push_back(p.run);
  EXPECT_THAT(of_points, ElementsAre(4, 2, 3, 1));
}

TEST_F(History, WithoutACommitGoesByTheTimeOfTheRun) {
  add(night(2, [](Result& result) { result.context = {{"suite", "fake"}}; }));
  add(night(1));
  const auto runs = open()->runs();
  EXPECT_EQ(runs[0].commit, "commit-1");
  EXPECT_EQ(runs[1].commit, "");
  EXPECT_EQ(runs[1].time(), first_night + 2 * day + 3600);
}

TEST_F(History, KeepsDevicesApartByWhatTheContextSaysOfThem) {
  const auto with_driver = [](const std::string& driver) {
    return [driver](Result& result) {
      for (CaseRecord& record : result.cases) record.device = "GPU/sm_1/8";
      result.context.emplace_back("device.GPU", "memory 80 GiB, driver " + driver);
    };
  };
  add(night(0, with_driver("1.0")));
  add(night(1, with_driver("1.0")));
  add(night(2, with_driver("2.0")));
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const auto& one : open()->series()) found.emplace_back(one.device, one.points);
  const std::pair old("GPU/sm_1/8, memory 80 GiB, driver 1.0", 2);
  const std::pair renewed("GPU/sm_1/8, memory 80 GiB, driver 2.0", 1);
  EXPECT_THAT(found, UnorderedElementsAre(old, old, old, renewed, renewed, renewed));
}

TEST_F(History, MakesTheFirstOkRunOfACaseItsAnchor) {
  add(night(0, [](Result& result) {
    result.cases[0].outcome = Unmeasured{.status = Status::timeout, .reason = "60 s passed"};
  }));
  add(night(1));
  add(night(2));
  const auto anchors = open()->anchors();
  ASSERT_THAT(anchors, SizeIs(3));
  EXPECT_EQ(anchors[2].run, 2) << "of the case that was not ok on the first night";
  EXPECT_EQ(anchors[0].reason, first_anchor_reason);
}

TEST_F(History, MakesTheEarliestRunTheAnchorInWhateverOrderRunsAreAdded) {
  for (const int which : {5, 3, 4, 1, 2}) add(night(which));
  const auto store = open();
  const Families families = families_of(*store, CaseNames(store->renames()));
  const std::int64_t first = store->runs().front().id;
  EXPECT_EQ(first, 4) << "night 1 was added as the fourth";
  const auto anchors = anchors_of(*store, families);
  ASSERT_THAT(anchors, SizeIs(3));
  for (const auto& [key, anchor] : anchors) EXPECT_EQ(anchor.run, first) << key.first;
}

TEST_F(History, NeverChangesOrForgetsAnAnchor) {
  add(night(0));
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
  for (const char* sql : {"UPDATE anchors SET run_id = 2", "DELETE FROM anchors"}) {
    EXPECT_NE(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  }
  sqlite3_close(database);
}

TEST_F(History, FollowsRenames) {
  const std::string old = fake_case(1, 1).id();
  const auto renamed = [](Result& result) { result.cases[0].coordinates.model = "new-model"; };
  const std::string now = night(9, renamed).cases[0].id();
  add_nights(0, 4);
  add_nights(4, 7, renamed);
  auto store = open();
  store->rename({{.from = old, .to = now, .set_at = 5, .who = "me"}});
  store = open();
  const auto runs = store->runs();
  for (const std::string& asked : {old, now}) {
    const auto found = trends(*store, runs, asked, "*", {});
    ASSERT_THAT(found, SizeIs(1)) << asked;
    EXPECT_EQ(found[0].id, now);
    EXPECT_THAT(found[0].older_names, ElementsAre(old));
    EXPECT_THAT(found[0].points, SizeIs(7));
    EXPECT_TRUE(std::ranges::is_sorted(found[0].points, {}, &HistoryPoint::time));
    EXPECT_EQ(found[0].anchor->run, 1) << "that of the old name";
  }
}

TEST_F(History, RefusesRenamesThatMakeOneOfTwoCasesOrGoRound) {
  add_nights(0, 2);
  const std::string a = fake_case(1, 1).id(), b = fake_case(16, 1).id();
  const auto rename = [&](const std::string& from, const std::string& to) {
    return refusal([&] { open()->rename({{.from = from, .to = to}}); });
  };
  EXPECT_THAT(rename(a, b), HasSubstr("so that they are two cases"));
  EXPECT_EQ(rename(a, "x"), "done");
  EXPECT_THAT(rename("x", a), HasSubstr("in a circle"));
  EXPECT_THAT(open()->renames(), SizeIs(1)) << "what was refused left nothing";
}

TEST_F(History, OfANewerVersionIsRefused) {
  add(night(0));
  execute("PRAGMA user_version = 7");
  for (const auto access : {HistoryAccess::existing, HistoryAccess::create}) {
    EXPECT_EQ(refusal_to_open(access),
              file_.string() +
                  ": the history is of version 7; this moegauge reads version 1; use the newer one "
                  "that wrote it");
  }
}

TEST_F(History, ThatIsNoneIsRefused) {
  EXPECT_THAT(refusal_to_open(), HasSubstr("there is no such history"));
  write("");
  EXPECT_THAT(refusal_to_open(), HasSubstr("an empty history"));
  write("{\"schema\": \"moegauge.result/1\"" + std::string(2000, ' ') + "}");
  EXPECT_THAT(refusal_to_open(HistoryAccess::create), HasSubstr("no history"));
  remove();
  execute("CREATE TABLE of_others(x)");
  EXPECT_THAT(refusal_to_open(HistoryAccess::create), HasSubstr("a database of something else"));
  EXPECT_THAT(refusal([] { open_history("/dev/null", HistoryAccess::create); }),
              HasSubstr("no file"));
  EXPECT_THAT(refusal([] { open_history("/proc/history.db", HistoryAccess::create); }),
              HasSubstr("cannot open the history: "));
}

TEST_F(History, CutAnywhereIsRefusedOrSaysTheSame) {
  add_nights(0, 8);
  const std::string whole = bytes(), said = everything();
  for (std::size_t cut = 0; cut < whole.size(); cut += 997) {
    write(whole.substr(0, cut));
    std::string now;
    const std::string refused = refusal([&] { now = everything(); });
    EXPECT_TRUE(refused != "done" || now == said) << cut;
  }
}

// SQLite itself notices no bit that turned over in a number.
TEST_F(History, WithABitTurnedOverIsRefusedOrSaysTheSame) {
  add_nights(0, 8);
  const std::string whole = bytes(), said = everything();
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string damaged = whole;
    const std::size_t bit = random() % (8 * whole.size());
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write(damaged);
    std::string now;
    const bool done = refusal([&] { now = everything(); }) == "done";
    refused += !done;
    ASSERT_TRUE(!done || now == said) << "bit " << bit;
  }
  EXPECT_GT(refused, 50);
}

TEST_F(History, IsSafeWithManyWritersAtOnce) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 8; ++i) add(night(4 * i + writer));
      add(night(0));  // all of them
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto store = open();
  EXPECT_THAT(store->runs(), SizeIs(32));
  for (const auto& series : store->series()) EXPECT_THAT(store->points(series, 100), SizeIs(32));
  const auto anchors = anchors_of(*store, families_of(*store, CaseNames(store->renames())));
  EXPECT_THAT(anchors, SizeIs(3));
}

}  // namespace
}  // namespace moegauge
