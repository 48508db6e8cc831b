// What public work on quantised fused-MoE kernels found about families of devices, as answers of
// `explain` from the backends of this version. No device need be here.
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "harness/commands/command_line_testing.h"

namespace moegauge {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class ExplainAnswers : public CommandLine {
 protected:
  struct Answer {
    int code = -1;
    std::string layer = {}, arch = {}, chosen = {}, ways_out = {};
    std::map<std::string, std::string> refused = {};  // backend: reason: why
  };

  Answer ask(const std::string& model, const std::string& scheme, const std::string& arch,
             const std::vector<std::string>& more = {}) {
    const std::span<const Backend* const> all = all_backends();
    backends_.assign(all.begin(), all.end());
    std::vector<std::string> words = {"explain", model, "--scheme", scheme,
                                      "--arch",  arch,  "--json"};
    words.insert(words.end(), more.begin(), more.end());
    Answer answer{.code = run(words)};
    const auto json = nlohmann::json::parse(out_);
    answer.layer = json["layer"];
    answer.arch = json["arch"];
    for (const auto& way : json["would_have_to_change"]) {
      answer.ways_out += way.get<std::string>() + "\n";
    }
    for (const auto& backend : json["backends"]) {
      const std::string name = backend["backend"];
      if (backend["standing"] == "chosen") answer.chosen = name;
      if (backend["standing"] == "refuses") {
        answer.refused[name] =
            backend["reason"].get<std::string>() + ": " + backend["why"].get<std::string>();
      }
    }
    return answer;
  }
};

// Any kind of parallelism reaches the same kernels.
const std::vector<std::vector<std::string>> parallelisms = {
    {}, {"--tp", "8"}, {"--ep", "8"}, {"--tp", "8", "--ep", "8"}};

TEST_F(ExplainAnswers, PerTokenPerChannelFp8IsServedOnGfx942) {
  for (const char* scheme : {"fp8_ptpc", "fp8_ptpc_fnuz"}) {
    for (const auto& ranks : parallelisms) {
      const Answer answer = ask("llama-4-scout", scheme, "gfx942", ranks);
      EXPECT_EQ(answer.code, 0) << scheme;
      EXPECT_EQ(answer.chosen, "hip") << scheme;
    }
  }
}

TEST_F(ExplainAnswers, Mxfp8RunsOnGfx94xThroughConversion) {
  for (const auto& ranks : parallelisms) {
    const Answer as_it_is = ask("minimax-m3", "mxfp8", "gfx942", ranks);
    EXPECT_EQ(as_it_is.code, 4);
    EXPECT_THAT(as_it_is.ways_out,
                HasSubstr("convert the weights: moegauge convert IN OUT --to fp8_block --flavor "
                          "fnuz"));
    for (const char* converted : {"fp8_block_frommx_fnuz", "fp8_block_frommx"}) {
      const Answer answer = ask("minimax-m3", converted, "gfx942", ranks);
      EXPECT_EQ(answer.code, 0) << converted;
      EXPECT_EQ(answer.chosen, "hip") << converted;
      EXPECT_THAT(answer.layer, HasSubstr("swiglu_clamped(alpha 1.702, beta 1, limit 7)"));
    }
  }
  EXPECT_THAT(ask("minimax-m3", "mxfp8", "gfx940").ways_out, HasSubstr("--flavor fnuz"));
}

// Its matrix instructions take MX scales: no conversion is asked for. Kernels for it are another
// question, which this version answers with no.
TEST_F(ExplainAnswers, Mxfp8NeedsNoConversionOnGfx950) {
  for (const auto& ranks : parallelisms) {
    const Answer answer = ask("minimax-m3", "mxfp8", "gfx950", ranks);
    EXPECT_THAT(answer.arch, HasSubstr("native MX"));
    EXPECT_THAT(answer.ways_out, Not(HasSubstr("convert")));
    EXPECT_THAT(answer.refused.at("hip"),
                HasSubstr("scheme: no kernels for scheme mxfp8 on gfx950"));
  }
}

TEST_F(ExplainAnswers, BlockFp8IsServedOnGfx1201) {
  for (const char* model : {"qwen3-30b-a3b", "qwen3.5-35b-a3b"}) {
    for (const auto& ranks :
         {std::vector<std::string>{"--tp", "2"}, {"--ep", "2"}, {"--tp", "2", "--ep", "2"}}) {
      const Answer answer = ask(model, "fp8_block", "gfx1201", ranks);
      EXPECT_EQ(answer.code, 0) << model;
      EXPECT_EQ(answer.chosen, "hip") << model;
    }
  }
}

TEST_F(ExplainAnswers, KernelsThatWeighTheInputAreRefusedAboveTop1) {
  for (const auto& [arch, backend] :
       {std::pair("gfx942", "hip"), {"gfx950", "hip"}, {"sm_90", "cuda"}, {"cpu", "cpu"}}) {
    const Answer refused = ask("mixtral-8x7b", "fp8_ptpc", arch, {"--router-weight-on-input"});
    EXPECT_EQ(refused.code, 4) << arch;
    // A build without a toolkit's headers answers with that alone, whatever is asked.
    if (const std::string& why = refused.refused.at(backend);
        why.find("built without") != std::string::npos) {
      EXPECT_THAT(why, MatchesRegex("instruction_set: built without [^;]*"));
      EXPECT_EQ(ask("mixtral-8x7b", "fp8_ptpc", arch).refused.at(backend), why);
      continue;
    }
    EXPECT_THAT(refused.refused.at(backend),
                HasSubstr("router_weight_on_input: router weight on input with top_k 2; it is "
                          "defined for top_k 1 only"))
        << arch;
    EXPECT_THAT(refused.ways_out, Not(HasSubstr("_fnuz"))) << "the scheme is none of the reasons";
    const Answer own = ask("mixtral-8x7b", "fp8_ptpc", arch);
    EXPECT_EQ(own.chosen, backend) << "its own path is what it was on " << arch;
    const Answer llama = ask("llama-4-maverick", "fp8_ptpc", arch, {"--tp", "8"});
    EXPECT_EQ(llama.chosen, backend) << arch;
    EXPECT_THAT(llama.layer, HasSubstr("router weight on input"));
  }
}

// A refusal is that of the architecture asked about, not of whichever is looked at last.
TEST_F(ExplainAnswers, NameTheArchitectureThatWasAskedAbout) {
  for (const char* arch : {"gfx942", "gfx950", "gfx1201"}) {
    EXPECT_THAT(ask("gpt-oss-20b", "mxfp4", arch).refused.at("hip"),
                HasSubstr(std::string("no kernels for scheme mxfp4 on ") + arch));
  }
  EXPECT_THAT(ask("qwen3-30b-a3b", "fp8_block_fnuz", "gfx950").refused.at("hip"),
              HasSubstr("its FP8 is OCP and the scheme's is FNUZ"));
  EXPECT_EQ(ask("qwen3-30b-a3b", "fp8_block_fnuz", "gfx942").chosen, "hip");
}

}  // namespace
}  // namespace moegauge
