// `moegauge history`, `gate --history` and `merge` as a user meets them.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "harness/commands/command_line_testing.h"
#include "harness/commands/output_of.h"
#include "harness/commands/run_context.h"
#include "harness/history/store.h"
#include "harness/result/shards.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class HistoryCommand : public CommandLine {
 protected:
  void SetUp() override {
    if (!history_is_built()) GTEST_SKIP() << "this build has no SQLite";
    for (int n = 0; n < 12; ++n) write(name(n), night(n));
  }
  static std::string name(int n) { return "night" + std::to_string(n) + ".json"; }
  Result night(int n) const {
    Result result = model_result_;
    const std::string day = (n < 9 ? "0" : "") + std::to_string(n + 1);
    result.machine = {{"date", "2026-10-" + day + "T03:00:00+00:00"}};
    result.context = {{"suite", "quick"},
                      {"commit", "abc" + std::to_string(n)},
                      {"commit_time", "2026-10-" + day + "T01:00:00Z"}};
    for (CaseRecord& record : result.cases) scale_latency(record, 1 + 0.002 * (n % 3));
    return result;
  }
  std::string db() const { return path("h.db"); }
  int add(int from, int to) {
    std::vector<std::string> words = {"history", "add"};
    for (int n = from; n < to; ++n) words.push_back(path(name(n)));
    words.insert(words.end(), {"--db", db()});
    return run(words);
  }
  void refuses(const std::vector<std::string>& words, const std::string& sentence, int code = 2) {
    EXPECT_EQ(run(words), code) << testing::PrintToString(words) << err_;
    EXPECT_THAT(err_, AllOf(StartsWith("moegauge: "), HasSubstr(sentence)));
    EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
  }
  std::string id() const { return model_result_.cases[0].id(); }
};

TEST_F(HistoryCommand, AddsShowsAndTrends) {
  EXPECT_EQ(add(0, 11), 0) << err_;
  EXPECT_THAT(out_,
              HasSubstr("night3.json: added as run 4, 3 of 3 cases ok, 2026-10-04T01:00:00Z"));
  EXPECT_EQ(add(10, 12), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("night10.json: is there already, as run 11"),
                          HasSubstr("night11.json: added as run 12")));
  EXPECT_EQ(run({"history", "show", "--db", db()}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("12 runs, 3 cases"), HasSubstr("3 cases on fake device")));
  EXPECT_EQ(run({"history", "trend", id(), "--db", db()}), 0);
  EXPECT_THAT(out_, HasSubstr("no change of level in 12 runs"));
  for (const auto& words : std::vector<std::vector<std::string>>{{"show"}, {"trend", "*"}}) {
    std::vector<std::string> all = {"history"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--db", db(), "--json"});
    EXPECT_EQ(run(all), 0);
    EXPECT_TRUE(nlohmann::json::accept(out_)) << out_;
  }
}

TEST_F(HistoryCommand, GatesAndAccepts) {
  add(0, 11);
  EXPECT_EQ(run({"gate", path(name(11)), "--history", db()}), 0) << err_ << out_;
  EXPECT_THAT(out_, HasSubstr("the last 10 ok runs of each case and its anchor"));
  Result slow = night(11);
  for (CaseRecord& record : slow.cases) scale_latency(record, 1.2);
  write("slow.json", slow);
  EXPECT_EQ(run({"gate", path("slow.json"), "--history", db(), "--json"}), 1);
  EXPECT_TRUE(nlohmann::json::accept(out_));
  EXPECT_THAT(out_, HasSubstr("gate --accept CASE --reason TEXT"));
  refuses({"gate", path("slow.json"), "--history", db(), "--accept", "*", "--reason", "safer sums"},
          "the history does not hold it; moegauge history add it first");
  run({"history", "add", path("slow.json"), "--db", db()});
  EXPECT_EQ(run({"gate", path("slow.json"), "--history", db(), "--accept", "*", "--reason",
                 "safer sums"}),
            0)
      << err_;
  EXPECT_THAT(out_, HasSubstr("accepted: " + id() + " on fake device: anchor run 1 -> run 12"));
  EXPECT_EQ(run({"history", "show", "--db", db()}), 0);
  EXPECT_THAT(out_, HasSubstr("anchor run 1 -> run 12: safer sums"));
}

TEST_F(HistoryCommand, RenamesByNameOrMap) {
  add(0, 3);
  refuses({"history", "rename", id() + "x", "new", "--db", db()}, "did you mean \"" + id());
  refuses({"history", "rename", "--db", db()}, "give OLD NEW, or --map FILE");
  EXPECT_EQ(run({"history", "rename", id(), "new", "--db", db()}), 0) << err_;
  const std::string second = model_result_.cases[1].id();
  write_text("map.json", "{\"" + second + "\": \"second\"}");
  EXPECT_EQ(run({"history", "rename", "--map", path("map.json"), "--db", db()}), 0) << err_;
  for (const std::string& asked : {std::string("new"), id()}) {
    EXPECT_EQ(run({"history", "trend", asked, "--db", db()}), 0) << asked;
    EXPECT_THAT(out_, HasSubstr("was " + id()));
  }
  EXPECT_EQ(run({"history", "show", "--db", db()}), 0);
  EXPECT_THAT(out_, HasSubstr(second + " -> second"));
}

TEST_F(HistoryCommand, RefusesBadInputInOneLine) {
  const std::string result = path(name(0));
  refuses({"history", "add", path("none.json"), "--db", db()}, "none.json");
  refuses({"history", "add", result, "--db", path("no/folder/h.db")}, "cannot open the history");
  refuses({"history", "add", result, "--db", db(), "--commit-time", "yesterday"}, "is no time");
  const std::string whole = read_text_file(result);
  refuses(
      {"history", "add", write_text("cut.json", whole.substr(0, whole.size() / 2)), "--db", db()},
      "a part of a run is none");
  refuses({"history", "add", write_text("empty.json", ""), "--db", db()}, "the file is empty");
  refuses({"history", "show", "--db", path("none.db")}, "there is no such history");
  refuses({"history", "show", "--db", result}, "no history");
  refuses({"history", "ad"}, "unknown action \"ad\"; did you mean \"add\"?; see moegauge history");
  refuses({"history", "show", "--bd", "x"}, "did you mean \"--db\"?; see moegauge history show");
  refuses({"gate", result}, "give --baseline or --history");
  refuses({"gate", result, "--history", result}, "no history");
  refuses({"gate", result, "--history", path("none.db")}, "no such baseline", 4);
  add(0, 1);
  refuses({"history", "trend", "nothing", "--db", db()}, "no case of", 4);
  refuses({"gate", result, "--history", db(), "--accept", "*"}, "--accept requires --reason");
}

TEST_F(HistoryCommand, LeavesTheHistoryAsItWasWhereTheDiskIsFull) {
  add(0, 2);
  const std::string before = read_text_file(db());
  rlimit old = {};
  getrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, SIG_IGN);
  int refused = 0;
  for (rlim_t limit = before.size() - 8192; limit <= before.size(); limit += 4096) {
    const rlimit limited = {limit, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
    const int code = add(2, 12);
    setrlimit(RLIMIT_FSIZE, &old);
    if (code == 0) continue;  // it needed no new page
    ++refused;
    EXPECT_EQ(code, 2);
    EXPECT_THAT(err_, HasSubstr("the history is as it was"));
    EXPECT_EQ(run({"history", "trend", "*", "--db", db()}), 0) << err_;
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(add(0, 12), 0) << "and it goes on where there is room";
  EXPECT_EQ(run({"history", "show", "--db", db()}), 0);
  EXPECT_THAT(out_, HasSubstr("12 runs"));
}

TEST_F(HistoryCommand, MergesShardsIntoAFileOfTheirOwn) {
  for (const int index : {1, 2}) {
    Result shard = model_result_;
    std::vector<CaseCoordinates> selection;
    for (const CaseRecord& record : shard.cases) selection.push_back(record.coordinates);
    shard.context = {{"suite", "quick"},
                     {"seed", "7"},
                     {shard_key, std::to_string(index) + "/2"},
                     {selection_key, selection_text(selection, "")},
                     {build_key, "b"}};
    if (index == 1) shard.cases.erase(shard.cases.begin() + 1);
    if (index == 2) shard.cases = {shard.cases[1]};
    write("s" + std::to_string(index) + ".json", shard);
  }
  const std::string a = path("s1.json"), b = path("s2.json"), out = path("whole.json");
  refuses({"merge", a, "--out", out}, "shard 2/2 is missing");
  refuses({"merge", a, b, "--out", a}, "it is a shard");
  refuses({"merge", a, path("none.json"), "--out", out}, "none.json");
  const std::string text = read_text_file(b);
  refuses({"merge", a, write_text("cut.json", text.substr(0, text.size() - 300)), "--out", out},
          "a part of a shard is none");
  EXPECT_FALSE(fs::exists(out));
  EXPECT_EQ(run({"merge", b, a, "--out", out}), 0) << err_;
  EXPECT_EQ(load_result(out).result.cases.size(), 3u);
  EXPECT_EQ(gate("whole.json", "r.json"), 0) << out_;
}

TEST(RunContext, TakesFactsOfTheDeviceOfThisName) {
  const std::string line = "NVIDIA H200, 575.57.08, 700.00, Disabled, Enabled";
  EXPECT_EQ(facts_in_smi_line(line, "NVIDIA_H200"),
            "driver 575.57.08, power cap 700.00 W, MIG Disabled, ECC Enabled");
  EXPECT_EQ(facts_in_smi_line(line, "Some_CPU"), "");
  EXPECT_EQ(facts_in_smi_line("", "NVIDIA_H200"), "");
  EXPECT_EQ(facts_in_smi_line("No devices were found", "NVIDIA_H200"), "");
}

TEST(OutputOf, IsWhatAProgramPrintsUnlessItFails) {
  EXPECT_EQ(output_of({"sh", "-c", "echo a; echo b >&2"}), "a\n");
  EXPECT_FALSE(output_of({"sh", "-c", "echo a; exit 3"}));
  EXPECT_FALSE(output_of({"no-such-program-at-all"}));
}

}  // namespace
}  // namespace moegauge
