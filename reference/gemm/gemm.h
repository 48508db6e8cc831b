// C = A B^T in fp64, the oracle's only heavy arithmetic: Eigen, compiled once per instruction set
// in a module of its own (gemm_kernel.cc) and chosen at run time. Nothing else in the project may
// compile Eigen with -m flags: header templates that two translation units compile differently
// under one name break the one-definition rule.
//
// All matrices are row-major.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "reference/base/expected.h"
#include "reference/base/thread_pool.h"

namespace moegauge {

enum class InstructionSet : std::uint8_t { portable, avx2, avx512 };
std::string_view to_string(InstructionSet set);
// Whether this processor and its operating system run the set; portable always.
bool processor_has(InstructionSet set);

struct ConstView {
  const double* data = nullptr;
  std::int64_t rows = 0, cols = 0;
  std::int64_t stride = 0;  // elements from one row to the next
};
struct View {
  double* data = nullptr;
  std::int64_t rows = 0, cols = 0;
  std::int64_t stride = 0;
};

// One opened module, valid for the life of the process.
class Gemm {
 public:
  // The widest set that this processor runs and whose module opens, the same for the whole process.
  // Throws InputError, naming what was tried, if not even the portable one opens.
  static const Gemm& best();
  // The module of one set from beside the executable or beside this code; or why there is none.
  static Expected<Gemm, std::string> open(InstructionSet set);
  // The same from `folder` alone.
  static Expected<Gemm, std::string> open(InstructionSet set, const std::filesystem::path& folder);

  InstructionSet instruction_set() const { return set_; }

  // c [m, n] = a [m, k] b [n, k]^T on the calling thread. c overlaps neither. Row i of c depends on
  // row i of a and on b alone.
  void multiply(const ConstView& a, const ConstView& b, const View& c) const;
  // The same on all threads of `pool`: bit for bit the same result whatever their number, because
  // the blocks in which c is computed are.
  void multiply(const ConstView& a, const ConstView& b, const View& c, ThreadPool& pool) const;

 private:
  using Function = void (*)(std::int64_t m, std::int64_t n, std::int64_t k, const double* a,
                            std::int64_t lda, const double* b, std::int64_t ldb, double* c,
                            std::int64_t ldc);
  Gemm(InstructionSet set, Function function) : set_(set), function_(function) {}

  InstructionSet set_;
  Function function_;
};

}  // namespace moegauge
