#include "harness/workload/tensor_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace moegauge {
namespace {

using ::testing::ElementsAre;

std::size_t bytes_of(const TensorForm& form) {
  const std::int64_t count =
      std::accumulate(form.shape.begin(), form.shape.end(), std::int64_t{1}, std::multiplies<>());
  return static_cast<std::size_t>(count) * element_size(form.dtypes.front());
}

// The scheme says how many bytes each part has, the form how they are arranged.
TEST(CanonicalParts, HaveAsManyBytesAsTheSchemeSays) {
  std::vector<std::string> names(scheme_names().begin(), scheme_names().end());
  for (const char* name : {"fp8_block_fnuz", "w4a16_g32_zp_actorder", "w8a16_g64_zp",
                           "w8a16_channel", "w4a16_channel_zp", "fp8_tensor_static"}) {
    names.emplace_back(name);
  }
  const MatrixShape shapes[] = {{.role = Role::w13, .rows = 154, .cols = 201},
                                {.role = Role::w2, .rows = 201, .cols = 77},
                                {.role = Role::w2, .rows = 256, .cols = 128}};
  for (const std::string& name : names) {
    const auto scheme = make_scheme(name);
    ASSERT_NE(scheme, nullptr) << name;
    for (const MatrixShape& shape : shapes) {
      const MatrixBytes bytes = scheme->weight_bytes(shape);
      std::size_t total = 0;
      for (const CanonicalPart& part : canonical_parts(*scheme, shape, 1)) {
        const std::size_t expected = part.bytes == &Matrix::values        ? bytes.values
                                     : part.bytes == &Matrix::scales      ? bytes.scales
                                     : part.bytes == &Matrix::zero_points ? bytes.zero_points
                                                                          : bytes.group_index;
        EXPECT_EQ(bytes_of(part.form), expected) << name << " " << part.name;
        total += expected;
      }
      EXPECT_EQ(total, bytes.total()) << name << " has a part without a name";
    }
  }
}

TEST(CanonicalParts, HaveTheExpertsInFront) {
  const MatrixShape shape = {.role = Role::w13, .rows = 154, .cols = 201};
  const auto parts = canonical_parts(*make_scheme("w4a16_g64_zp"), shape, 5);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].name, "w13");
  EXPECT_THAT(parts[0].form.shape, ElementsAre(5, 154, 101));
  EXPECT_EQ(parts[1].name, "w13_scale");
  EXPECT_THAT(parts[1].form.shape, ElementsAre(5, 154, 4));
  EXPECT_EQ(parts[2].name, "w13_zero_point");
  EXPECT_THAT(parts[2].form.shape, ElementsAre(5, 77, 4));
}

TEST(TensorForm, IsNamedWithEveryDtype) {
  EXPECT_EQ(describe(TensorForm{{TensorDtype::f8_e4m3, TensorDtype::u8}, {2, 3}}),
            "F8_E4M3 or U8 [2, 3]");
}

TEST(TensorForm, MayLeaveOutAxesOfOneAtTheEndOnlyWhereItIsLoose) {
  const TensorInfo flat = {.name = "s", .dtype = TensorDtype::f32, .shape = {4}};
  EXPECT_TRUE(fits(flat, {{TensorDtype::f32}, {4, 1, 1}, true}));
  EXPECT_FALSE(fits(flat, {{TensorDtype::f32}, {4, 1, 1}, false}));
  EXPECT_FALSE(fits(flat, {{TensorDtype::f32}, {4, 2}, true}));
}

}  // namespace
}  // namespace moegauge
