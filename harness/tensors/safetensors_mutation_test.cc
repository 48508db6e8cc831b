// Damaged files by the ten thousand, the same ones every time: each is refused with an InputError
// or read within its bounds. The fuzzer (fuzz/) looks further; this runs everywhere, in seconds.
#include <random>

#include "harness/tensors/safetensors.h"
#include "harness/tensors/safetensors_testing.h"

namespace moegauge {
namespace {

const std::string seed_file = raw_safetensors(
    R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F8_E4M3","shape":[2,4],"data_offsets":[0,8]},)"
    R"("w_scale":{"dtype":"F8_E8M0","shape":[2,1],"data_offsets":[8,10]},)"
    R"("s":{"dtype":"F32","shape":[],"data_offsets":[10,14]},"z":{"dtype":"I64","shape":[0,3],)"
    R"("data_offsets":[14,14]}})",
    "01234567890123");

std::string damaged(std::mt19937& random) {
  static const std::vector<std::string> words = {"18446744073709551615",
                                                 "9223372036854775807",
                                                 "-1",
                                                 "0",
                                                 "1e3",
                                                 "null",
                                                 "[]",
                                                 "{}",
                                                 "\"",
                                                 "4294967296",
                                                 ",",
                                                 ":",
                                                 "]",
                                                 "}",
                                                 "BF16",
                                                 "F64",
                                                 "w_scale",
                                                 "\\u0000"};
  std::string file = seed_file;
  for (unsigned changes = 1 + random() % 4; changes > 0 && !file.empty(); --changes) {
    const std::size_t at = random() % file.size();
    const std::string& word = words[random() % words.size()];
    switch (random() % 6) {
      case 0:
        file[at] = static_cast<char>(random());
        break;
      case 1:
        file[at] = static_cast<char>(file[at] ^ 1 << random() % 8);
        break;
      case 2:
        file.resize(at);
        break;
      case 3:
        file.insert(at, word);
        break;
      case 4:
        file.replace(at, word.size(), word);
        break;
      default:
        file.erase(at, 1 + random() % 8);
        break;
    }
  }
  // Half of them with a length that fits again, so that the damage is met further in.
  if (file.size() >= 8 && random() % 2 == 0) {
    const std::size_t end = file.rfind('}');
    if (end != std::string::npos && end >= 8) {
      file = raw_safetensors(file.substr(8, end + 1 - 8), file.substr(end + 1));
    }
  }
  return file;
}

TEST(SafetensorsMutation, IsRefusedOrLiesWithinTheFile) {
  std::mt19937 random(20261130);
  int refused = 0, read = 0;
  for (int round = 0; round < 40'000; ++round) {
    const std::string file = damaged(random);
    try {
      const SafetensorsHeader header = parse_safetensors_header(file, file.size(), "f");
      ++read;
      std::uint64_t bytes = header.data_begin;
      for (const TensorInfo& tensor : header.tensors) {
        ASSERT_LE(tensor.begin, tensor.end);
        ASSERT_LE(header.data_begin + tensor.end, file.size());
        bytes += tensor.bytes();
      }
      ASSERT_EQ(bytes, file.size());
    } catch (const InputError&) {
      ++refused;
    }
  }
  // The damage is neither so great that nothing is read nor so small that nothing is refused.
  EXPECT_GT(refused, 10'000);
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace moegauge
