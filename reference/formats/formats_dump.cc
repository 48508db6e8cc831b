// Prints what the scalar formats give, as hexadecimal words, for ml_dtypes_check.py.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp16.h"
#include "reference/formats/fp8.h"

namespace moegauge {
namespace {

template <typename Fn>
int print(std::uint32_t count, const Fn& fn) {
  for (std::uint32_t i = 0; i < count; ++i) std::printf("%x\n", fn(i));
  return 0;
}

template <typename Code>
int print_decoded(std::uint32_t count, float (*decode)(Code)) {
  return print(count, [decode](std::uint32_t i) {
    return std::bit_cast<std::uint32_t>(decode(static_cast<Code>(i)));
  });
}

float bf16(std::uint32_t i) { return bf16_to_float(static_cast<std::uint16_t>(i)); }

int print_table(std::string_view table) {
  if (table == "decode_e4m3fn") return print_decoded(256, e4m3fn_to_float);
  if (table == "decode_e4m3fnuz") return print_decoded(256, e4m3fnuz_to_float);
  if (table == "decode_e8m0") return print_decoded(256, e8m0_to_float);
  if (table == "decode_e2m1") return print_decoded(16, e2m1_to_float);
  if (table == "decode_fp16") return print_decoded(65536, fp16_to_float);
  const auto encode = [](auto function) {
    return print(65536, [function](std::uint32_t i) -> unsigned { return function(bf16(i)); });
  };
  if (table == "encode_e4m3fn") return encode(float_to_e4m3fn);
  if (table == "encode_e4m3fnuz") return encode([](float v) { return float_to_e4m3fnuz(v); });
  if (table == "encode_fp16") return encode(float_to_fp16);
  for (const std::uint32_t low : {0x7FFFu, 0x8000u, 0x8001u}) {
    char name[32];
    std::snprintf(name, sizeof(name), "encode_bf16_%x", low);
    if (table == name) {
      return print(65536, [low](std::uint32_t i) -> unsigned {
        return float_to_bf16(std::bit_cast<float>((i << 16) | low));
      });
    }
  }
  return 2;
}

}  // namespace
}  // namespace moegauge

int main(int argc, char** argv) { return argc == 2 ? moegauge::print_table(argv[1]) : 2; }
