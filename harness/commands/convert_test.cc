// `moegauge convert` from the command line to the exit code; what is converted into what is tested
// in harness/tensors/convert_checkpoint_test.cc.
#include <unistd.h>

#include <csignal>
#include <sstream>

#include "harness/commands/command.h"
#include "harness/tensors/safetensors_testing.h"

namespace moegauge {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Ran {
  int code = -1;
  std::string out, err;
};

Ran run(std::vector<std::string> words) {
  words.insert(words.begin(), {"moegauge", "convert"});
  std::vector<const char*> argv;
  argv.reserve(words.size());
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  const int code = run_command_line(static_cast<int>(argv.size()), argv.data(),
                                    {.out = out, .err = err, .backends = {}});
  return {code, out.str(), err.str()};
}

// A 1x2 matrix of 448 and `second` under the scale 1.
std::string mxfp8_file(char second) {
  return raw_safetensors(R"({"w":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[0,2]},)"
                         R"("w_scale":{"dtype":"U8","shape":[1,1],"data_offsets":[2,3]}})",
                         {'\x7E', second, 127});
}

TEST(Convert, PrintsTheErrorOfEachTensorAndInTotal) {
  const TemporaryFolder folder;
  const std::string in = folder.write("in.safetensors", mxfp8_file(0x38));
  const Ran ran = run({in, folder / "out.safetensors", "--to", "fp8_block", "--flavor", "ocp"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "w [1, 2]: relative error 0.000000\n"
            "total: relative error 0.000000; 1 converted, 0 copied\n");
  EXPECT_THAT(folder.names(), ElementsAre("in.safetensors", "out.safetensors"));
}

TEST(Convert, TakesABlockAndAFlavor) {
  const TemporaryFolder folder;
  const std::string in = folder.write("in.safetensors", mxfp8_file(0x38));
  const std::string out = folder / "out.safetensors";
  EXPECT_EQ(run({in, out, "--to", "fp8_block", "--flavor", "fnuz", "--block", "1,1"}).code, 0);
  // A block per element: 1 becomes 448 (0x7E) too, under 1/448; both scales doubled, at the end.
  EXPECT_THAT(file_text(out), HasSubstr("\"shape\":[1,2]"));
  EXPECT_THAT(file_text(out), HasSubstr("\x7E\x7E"));
}

TEST(Convert, RefusesNonFiniteValuesUnlessAllowed) {
  const TemporaryFolder folder;
  const std::string in = folder.write("in.safetensors", mxfp8_file(0x7F));
  std::vector<std::string> words = {
      in, folder / "out.safetensors", "--to", "fp8_block", "--flavor", "ocp"};
  const Ran refused = run(words);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("moegauge: "), HasSubstr("tensor \"w\" holds 1 values"),
                                 HasSubstr("[0, 1]")));
  EXPECT_THAT(folder.names(), ElementsAre("in.safetensors"));
  words.push_back("--allow-nonfinite");
  const Ran allowed = run(words);
  EXPECT_EQ(allowed.code, 0);
  EXPECT_THAT(allowed.out, HasSubstr("1 values not finite"));
}

TEST(Convert, EndsWithTwoWhereThereIsNothingToConvertOrTheUsageIsWrong) {
  const TemporaryFolder folder;
  const std::string in = folder.write("in.safetensors", raw_safetensors("{}", ""));
  const std::string out = folder / "out.safetensors";
  const Ran nothing = run({in, out, "--to", "fp8_block", "--flavor", "ocp"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("nothing to convert"));
  EXPECT_EQ(run({in, out, "--to", "fp8_block"}).code, 2);
  EXPECT_EQ(run({in, out, "--to", "int3", "--flavor", "ocp"}).code, 2);
  EXPECT_EQ(run({in, out, "--to", "fp8_block", "--flavor", "ocp", "--block", "0,128"}).code, 2);
  EXPECT_EQ(run({in, in, "--to", "fp8_block", "--flavor", "ocp"}).code, 2);
  EXPECT_THAT(folder.names(), ElementsAre("in.safetensors"));
}

TEST(Convert, LeavesNothingUnfinishedWhenItIsInterrupted) {
  const TemporaryFolder folder;
  const std::string in = folder.write("in.safetensors", mxfp8_file(0x38));
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &term, &before);  // so that it does not end the test
  kill(getpid(), SIGTERM);
  const Ran ran = run({in, folder / "out.safetensors", "--to", "fp8_block", "--flavor", "ocp"});
  int taken = 0;
  sigwait(&term, &taken);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("interrupted"));
  EXPECT_THAT(folder.names(), ElementsAre("in.safetensors"));
}

}  // namespace
}  // namespace moegauge
