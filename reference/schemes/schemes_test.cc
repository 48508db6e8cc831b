// What all schemes promise: names, sizes, ragged shapes, exactness. Values worked out by hand stand
// in byte_scheme_test.cc and group_scheme_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "reference/schemes/scheme_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using testing::ElementsAre;

TEST(SchemeNames, ComeInTheOrderOfTheTable) {
  const auto names = scheme_names();
  EXPECT_THAT(std::vector<std::string_view>(names.begin(), names.end()),
              ElementsAre("bf16", "fp16", "fp8_tensor", "fp8_ptpc", "fp8_block", "mxfp8", "w4a16",
                          "w8a16", "w8a8_int8", "mxfp4"));
}

const std::vector<std::string> kCanonical = {"bf16",
                                             "fp16",
                                             "fp8_tensor",
                                             "fp8_tensor_static",
                                             "fp8_tensor_fnuz",
                                             "fp8_tensor_static_fnuz224",
                                             "fp8_ptpc",
                                             "fp8_ptpc_fnuz",
                                             "fp8_block",
                                             "fp8_block_fnuz",
                                             "fp8_block_fnuz224",
                                             "fp8_block_frommx",
                                             "fp8_block_frommx_fnuz",
                                             "mxfp8",
                                             "mxfp8_floor",
                                             "mxfp8_fnuz",
                                             "mxfp8_floor_fnuz224",
                                             "w4a16_g32",
                                             "w4a16_g64",
                                             "w4a16_g128",
                                             "w4a16_channel",
                                             "w4a16_g128_zp",
                                             "w4a16_channel_zp",
                                             "w4a16_g64_actorder",
                                             "w4a16_g32_zp_actorder",
                                             "w8a16_g128",
                                             "w8a16_channel_zp",
                                             "w8a16_g32_zp_actorder",
                                             "w8a8_int8",
                                             "mxfp4"};

TEST(SchemeNames, AreReadBackAsTheyAreSpelt) {
  for (const auto& name : kCanonical) {
    const auto scheme = make_scheme(name);
    ASSERT_TRUE(scheme) << name;
    EXPECT_EQ(scheme->name(), name);
  }
}

TEST(SchemeNames, AreMadeCanonical) {
  EXPECT_EQ(make_scheme("w4a16")->name(), "w4a16_g128");
  EXPECT_EQ(make_scheme("w8a16_zp")->name(), "w8a16_g128_zp");
  EXPECT_EQ(make_scheme("w4a16_actorder_zp_g64")->name(), "w4a16_g64_zp_actorder");
  EXPECT_EQ(make_scheme("fp8_tensor_fnuz_static")->name(), "fp8_tensor_static_fnuz");
}

TEST(SchemeNames, ThatDoNotExistGiveNothing) {
  for (const char* name : {"",
                           "_",
                           "fp8",
                           "fp8_",
                           "fp8_blocks",
                           "fp8_block_",
                           "fp8_block__fnuz",
                           "fp8_block_fnuz_fnuz",
                           "fp8_block_fnuz_fnuz224",
                           "fp8_block_static",
                           "bf16_fnuz",
                           "BF16",
                           " bf16",
                           "bf16 ",
                           "w4a16_g16",
                           "w4a16_g32_g64",
                           "w4a16_g32_channel",
                           "w4a16_channel_actorder",
                           "w4a16_zp_zp",
                           "w4a16g128",
                           "mxfp8_fnuz_fnuz224",
                           "w8a8",
                           "mxfp4_floor"}) {
    EXPECT_FALSE(make_scheme(name)) << name;
  }
}

TEST(SchemeNames, ShowTheirOptions) {
  EXPECT_EQ(scheme_options("fp8_block"), "[_frommx][_fnuz|_fnuz224]");
  EXPECT_EQ(scheme_options("bf16"), "");
  EXPECT_EQ(scheme_options("no such"), "");
}

TEST(Schemes, NameTheirConfigFilesAsEnginesDo) {
  const std::map<std::string, std::string> expected = {{"bf16", ""},
                                                       {"fp16", ""},
                                                       {"fp8_tensor", "fp8_w8a8"},
                                                       {"fp8_ptpc", "fp8_w8a8"},
                                                       {"fp8_block", "fp8_w8a8"},
                                                       {"mxfp8", "mxfp8"},
                                                       {"w4a16", "int4_w4a16"},
                                                       {"w8a16", "int8_w8a16"},
                                                       {"w8a8_int8", "int8_w8a8"},
                                                       {"mxfp4", "mxfp4_w4a16"}};
  for (const auto name : scheme_names()) {
    const auto scheme = make_scheme(name);
    EXPECT_EQ(scheme->config_dtype(), expected.at(std::string(name))) << name;
    const bool blocks = name == "fp8_block";
    EXPECT_EQ(scheme->config_block_shape(),
              blocks ? std::optional(std::pair(128, 128)) : std::nullopt);
  }
}

// The design's, or where 20 seeds were measured 1.5 times their worst (docs/method.md).
TEST(Schemes, ShipTheLimitsOfTheMethod) {
  const auto limits = [](const char* name, Dtype dtype, bool reduced) {
    const auto l = make_scheme(name)->error_limits(dtype, reduced);
    return std::pair(l.relative_l2, l.worst_token);
  };
  EXPECT_EQ(limits("mxfp8", Dtype::bf16, false), std::pair(0.0064, 0.052));
  EXPECT_EQ(limits("fp8_tensor", Dtype::bf16, false), std::pair(0.0023, 0.0087));
  EXPECT_EQ(limits("w8a8_int8", Dtype::bf16, false), std::pair(0.0021, 0.0066));
  EXPECT_EQ(limits("fp8_block", Dtype::bf16, false), std::pair(0.0027, 0.01));
  EXPECT_EQ(limits("fp8_ptpc", Dtype::bf16, false), std::pair(0.0055, 0.03));
  EXPECT_EQ(limits("fp8_ptpc", Dtype::bf16, true), std::pair(0.039, 0.065));
  EXPECT_EQ(limits("bf16", Dtype::bf16, false), std::pair(0.0014, 0.0074));
  EXPECT_EQ(limits("w4a16", Dtype::bf16, false), std::pair(0.0014, 0.0074));
  EXPECT_EQ(limits("w8a16", Dtype::fp16, false), std::pair(0.0005, 0.0012));
  EXPECT_EQ(limits("fp16", Dtype::fp16, false), std::pair(0.0005, 0.0012));
}

TEST(Schemes, HoldFewRowsToALimitOfTheirOwnWhereTheyHaveOne) {
  const ErrorLimits bf16 = make_scheme("bf16")->error_limits(Dtype::bf16, false);
  EXPECT_EQ(bf16.over(15).relative_l2, 0.0036);
  EXPECT_EQ(bf16.over(16).relative_l2, 0.0014);
  EXPECT_EQ(bf16.over(1).worst_token, bf16.worst_token);
  const ErrorLimits block = make_scheme("fp8_block")->error_limits(Dtype::bf16, false);
  EXPECT_EQ(block.over(1).relative_l2, block.relative_l2);
}

TEST(Schemes, TakeTheirMatricesFromTheLayer) {
  const Layer layer = {.experts = 2,
                       .top_k = 1,
                       .hidden_size = 7168,
                       .intermediate_size = 192,
                       .dtype = Dtype::fp16,
                       .gate_up_order = GateUpOrder::interleaved};
  const auto w13 = weight_shape(layer, Role::w13), w2 = weight_shape(layer, Role::w2);
  EXPECT_EQ(std::pair(w13.rows, w13.cols), (std::pair<std::int64_t, std::int64_t>(384, 7168)));
  EXPECT_EQ(std::pair(w2.rows, w2.cols), (std::pair<std::int64_t, std::int64_t>(7168, 192)));
  EXPECT_EQ(w13.dtype, Dtype::fp16);
  EXPECT_EQ(w13.gate_up_order, GateUpOrder::interleaved);
}

// Sizes in the layouts that scheme files document, worked out for 80 x 200.
// 200 columns of a whole 400: 7 groups of 32 by themselves, 13 of the whole.
TEST(Schemes, KeepTheGroupsOfTheWholeWhereColumnsOfAllAreScattered) {
  const MatrixShape cut = {.role = Role::w2, .rows = 80, .cols = 200, .whole_cols = 400};
  const MatrixBytes scattered = make_scheme("w4a16_g32_zp_actorder")->weight_bytes(cut);
  EXPECT_EQ(scattered.values, 8000u);
  EXPECT_EQ(scattered.scales, 80u * 13 * 2);
  EXPECT_EQ(scattered.zero_points, 40u * 13);
  EXPECT_EQ(scattered.group_index, 800u);
  EXPECT_EQ(make_scheme("w4a16_g32_zp")->weight_bytes(cut).scales, 80u * 7 * 2);
  EXPECT_EQ(make_scheme("fp8_block")->weight_bytes(cut).scales, 1u * 2 * 4);
}

TEST(Schemes, SayHowManyBytesARaggedMatrixTakes) {
  struct Expected {
    const char* name;
    std::size_t values, scales, zero_points, group_index;
  };
  for (const auto& e : {Expected{"bf16", 32000, 0, 0, 0},
                        {"fp8_tensor", 16000, 4, 0, 0},
                        {"fp8_ptpc", 16000, 80 * 4, 0, 0},
                        {"fp8_block", 16000, 1 * 2 * 4, 0, 0},
                        {"mxfp8", 16000, 80 * 7, 0, 0},
                        {"w8a8_int8", 16000, 80 * 4, 0, 0},
                        {"mxfp4", 8000, 80 * 7, 0, 0},
                        {"w4a16_g128", 8000, 80 * 2 * 2, 0, 0},
                        {"w4a16_g32_zp_actorder", 8000, 80 * 7 * 2, 40 * 7, 800},
                        {"w8a16_channel_zp", 16000, 80 * 2, 80, 0}}) {
    const MatrixBytes bytes = make_scheme(e.name)->weight_bytes({Role::w2, 80, 200});
    EXPECT_EQ(bytes.values, e.values) << e.name;
    EXPECT_EQ(bytes.scales, e.scales) << e.name;
    EXPECT_EQ(bytes.zero_points, e.zero_points) << e.name;
    EXPECT_EQ(bytes.group_index, e.group_index) << e.name;
  }
}

class EveryScheme : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<const Scheme> scheme = make_scheme(GetParam());
  Dtype dtype = scheme->traits().only.value_or(Dtype::bf16);
};

// rows x cols: N = 80 -> w13 160 rows; N = 192, 64, 1344 as cols; nothing a multiple of 128 alone.
const std::pair<std::int64_t, std::int64_t> kRagged[] = {{160, 200}, {100, 192}, {65, 64},
                                                         {40, 1344}, {2, 1},     {6, 33}};

// How far a rounded value may be off, in units of the value and of its scale unit's largest: half
// of the widest gap between codes. E4M3 has 3 mantissa bits and, relative to 448, gaps of 2^-9 *
// 2^-8.8 at zero; E2M1 has one, and gaps of 0.5 / 6 at zero. A power-of-two scale may waste a
// factor of two, E4M3's `floor` policy 256; a requantised half has two roundings.
struct Bound {
  double relative, of_unit;
};
Bound bound_of(const std::string& name, const OperandTraits& w) {
  // Half the smallest code, where the largest magnitude is at least one unit.
  const bool floor = name.find("floor") != std::string::npos;
  // Rounded twice.
  if (name.find("frommx") != std::string::npos) return {0x1p-3 * 1.05, 0x1p-16};
  switch (w.element) {
    case Element::activation_dtype:
      return {0, 0};
    case Element::e4m3fn:
      return floor              ? Bound{0x1p-4, 0x1p-10}
             : w.unit.rows == 0 ? Bound{0x1p-3 + 0x1p-6, 0x1p-17}
                                : Bound{0x1p-4 * 1.001, 0x1p-17};
    case Element::e4m3fnuz:
      return floor              ? Bound{0x1p-4, 0x1p-11}
             : w.unit.rows == 0 ? Bound{0x1p-3 + 0x1p-6, 0x1p-16}
                                : Bound{0x1p-4 * 1.001, 0x1p-17};
    case Element::e2m1:
      return {0.25, 0.5 / 6};
    case Element::int4:
    case Element::int8:
      // Half a step. Zero points put lowest and highest up to 2 amax apart, and rounding of the
      // zero point and of the scale to bf16 each may cost about half a step at the ends.
      return {0x1p-8, (w.zero_points ? 2.0 / (w.highest - w.lowest) : 0.5 / w.highest) * 1.01};
  }
  return {};
}

TEST_P(EveryScheme, RoundsEveryElementOfARaggedMatrixWithinHalfAStepOfItsUnit) {
  for (const auto& [rows, cols] : kRagged) {
    const auto w = random_values(rows * cols, 7, dtype);
    const MatrixShape shape = {.role = Role::w13, .rows = rows, .cols = cols, .dtype = dtype};
    const auto storage = quantize(*scheme, shape, w);
    const auto back = dequantize(*scheme, storage);
    const OperandTraits traits = scheme->traits().weight;
    const Bound bound = bound_of(GetParam(), traits);
    const std::int64_t unit_rows = traits.unit.rows == 0 ? rows : traits.unit.rows;
    const std::int64_t unit_cols =
        traits.unit.cols == 0 || traits.group_index ? cols : traits.unit.cols;
    std::map<std::pair<std::int64_t, std::int64_t>, double> amax;
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      double& most = amax[{i / cols / unit_rows, i % cols / unit_cols}];
      most = std::max(most, std::fabs(static_cast<double>(w[static_cast<std::size_t>(i)])));
    }
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const auto k = static_cast<std::size_t>(i);
      const double allowed = bound.relative * std::fabs(w[k]) +
                             bound.of_unit * amax[{i / cols / unit_rows, i % cols / unit_cols}];
      ASSERT_NEAR(back[k], w[k], allowed)
          << GetParam() << " " << rows << "x" << cols << " at " << i;
    }
  }
}

TEST_P(EveryScheme, DequantizesAnyRowsAsItDoesAll) {
  const MatrixShape shape = {.role = Role::w13, .rows = 142, .cols = 130, .dtype = dtype};
  const auto storage = quantize(*scheme, shape, random_values(142 * 130, 8, dtype));
  const auto all = dequantize(*scheme, storage);
  for (const auto& [begin, end] : {std::pair{0, 1}, {127, 129}, {141, 142}, {5, 5}, {1, 140}}) {
    const std::vector<double> expected(all.begin() + begin * 130, all.begin() + end * 130);
    EXPECT_EQ(dequantize(*scheme, storage, begin, end), expected) << begin << ".." << end;
  }
}

TEST_P(EveryScheme, GivesZerosAndFinitePositiveScalesForZeros) {
  const MatrixShape shape = {.role = Role::w13, .rows = 6, .cols = 70, .dtype = dtype};
  const auto storage = quantize(*scheme, shape, std::vector<float>(6 * 70, 0.0f));
  for (const double v : dequantize(*scheme, storage)) EXPECT_EQ(v, 0);
  for (const double v : emulate(*scheme, std::vector<float>(140, 0.0f),
                                {.rows = 2, .cols = 70, .dtype = dtype, .static_scale = 1})) {
    EXPECT_EQ(v, 0);
  }
}

// The smallest magnitudes: no scale underflows to zero, no quotient overflows.
TEST_P(EveryScheme, SurvivesDenormals) {
  const MatrixShape shape = {.role = Role::w13, .rows = 4, .cols = 40, .dtype = dtype};
  for (const float tiny : {1e-45f, 1e-40f, 1.2e-38f, 6e-8f}) {
    const auto storage = quantize(*scheme, shape, std::vector<float>(160, tiny));
    for (const double v : dequantize(*scheme, storage)) {
      EXPECT_TRUE(std::isfinite(v));
      EXPECT_LE(std::fabs(v), 8 * 6e-8);
    }
    for (const double v : emulate(*scheme, std::vector<float>(40, tiny),
                                  {.rows = 1, .cols = 40, .dtype = dtype, .static_scale = 1})) {
      EXPECT_TRUE(std::isfinite(v));
    }
  }
}

// The contract of OperandTraits, on which generated inputs without quantisation error rest.
TEST_P(EveryScheme, KeepsUnitsThatHoldBothExtremesExactly) {
  const OperandTraits traits = scheme->traits().weight;
  if (traits.scale == ScaleKind::none) GTEST_SKIP() << "nothing is scaled";
  if (traits.zero_points && traits.group_index) GTEST_SKIP() << "promised to neither";
  const std::int64_t rows = 160, cols = 300;
  const std::int64_t unit_cols =
      traits.unit.cols == 0 || traits.group_index ? cols : traits.unit.cols;
  const std::int64_t unit_rows = traits.unit.rows == 0 ? rows : traits.unit.rows;
  std::vector<float> w(static_cast<std::size_t>(rows * cols));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const std::int64_t unit = r / unit_rows * 31 + c / unit_cols;
      const int k = static_cast<int>(unit % 5) - 2;
      // Extremes alternate in every run, whichever columns a group has; small integers between.
      const std::int64_t in_unit = c % unit_cols;
      double q = static_cast<double>((r * 7 + c * 3) % 4) - 1;
      if (in_unit == 0 || traits.group_index) q = c % 2 == 0 ? traits.lowest : traits.highest;
      if (in_unit == 1 && !traits.group_index) q = traits.highest;
      w[static_cast<std::size_t>(r * cols + c)] = static_cast<float>(std::ldexp(q, k));
    }
  }
  const MatrixShape shape = {.role = Role::w13, .rows = rows, .cols = cols, .dtype = dtype};
  const auto back = dequantize(*scheme, quantize(*scheme, shape, w));
  EXPECT_EQ(back, std::vector<double>(w.begin(), w.end()));
}

TEST_P(EveryScheme, KeepsANanActivationToItsOwnElement) {
  if (scheme->traits().activation.element == Element::int8) GTEST_SKIP() << "int8 has no NaN";
  auto x = random_values(2 * 70, 9, dtype);
  const ActivationShape shape = {.rows = 2, .cols = 70, .dtype = dtype, .static_scale = 0.01f};
  const auto clean = emulate(*scheme, x, shape);
  x[75] = std::nanf("");  // not the largest of anything
  const auto dirty = emulate(*scheme, x, shape);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i == 75) {
      EXPECT_TRUE(std::isnan(dirty[i]));
    } else {
      EXPECT_EQ(dirty[i], clean[i]) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, EveryScheme, testing::ValuesIn(kCanonical),
                         [](const auto& param) { return param.param; });

std::string code_of(std::string line) { return line.substr(0, line.find("//")); }

// Our sources under `folder` but for tests, by path, each as lines without comments.
std::map<std::filesystem::path, std::vector<std::string>> sources(const char* folder) {
  std::map<std::filesystem::path, std::vector<std::string>> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto& path = entry.path();
    const std::string stem = path.stem().string();
    if (path.extension() != ".cc" && path.extension() != ".h") continue;
    if (stem.ends_with("_test") || stem.ends_with("_testing")) continue;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) found[path].push_back(code_of(line));
  }
  return found;
}

TEST(ANewScheme, IsOneFileAndOneLine) {
  std::ifstream table("reference/schemes/CMakeLists.txt");
  ASSERT_TRUE(table) << "run in the source folder";
  std::map<std::string, int> lines;
  for (std::string line; std::getline(table, line);) {
    const auto begin = line.find_first_not_of(' ');
    const auto end = line.find_last_not_of(" )");
    if (begin != std::string::npos) ++lines[line.substr(begin, end - begin + 1)];
  }
  for (const auto name : scheme_names()) {
    const std::string family(name);
    EXPECT_EQ(lines[family], 1) << family;
    const auto file = std::filesystem::path("reference/schemes").append(family);
    EXPECT_TRUE(std::filesystem::exists(file.string().append(".cc"))) << family;
  }
}

// In the reference its quoted name stands in its own file, in kernels in files of its name. (bf16
// and fp16 are element types too, which others do speak of.)
TEST(ANewScheme, IsNamedInItsOwnFilesAlone) {
  int own = 0;
  for (const char* folder : {"reference", "kernels"}) {
    for (const auto& [path, lines] : sources(folder)) {
      for (const auto& line : lines) {
        for (const auto name : scheme_names()) {
          if (name == "bf16" || name == "fp16" || line.starts_with("#include")) continue;
          if (line.find(std::string(1, '"').append(name)) == std::string::npos) continue;
          EXPECT_TRUE(path.stem().string().starts_with(name)) << path << ": " << line;
          ++own;
        }
      }
    }
  }
  EXPECT_GT(own, 0);
}

}  // namespace
}  // namespace moegauge
