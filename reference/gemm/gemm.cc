#include "reference/gemm/gemm.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <vector>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

constexpr std::array kWidestFirst = {InstructionSet::avx512, InstructionSet::avx2,
                                     InstructionSet::portable};

std::string module_name(InstructionSet set) {
  return "moegauge_gemm_" + std::string(to_string(set)) + ".so";
}

// Where the modules may lie: beside the executable, or beside the shared object that holds this
// code.
std::vector<std::filesystem::path> module_folders() {
  std::vector<std::filesystem::path> folders;
  std::error_code none;
  if (const auto exe = std::filesystem::read_symlink("/proc/self/exe", none); !none) {
    folders.push_back(exe.parent_path());
  }
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&module_name), &info) != 0 && info.dli_fname) {
    const auto here = std::filesystem::absolute(info.dli_fname, none).parent_path();
    if (!none && !std::ranges::count(folders, here)) folders.push_back(here);
  }
  return folders;
}

// Blocks of c that one thread computes at a time; large enough that packing a and b costs little.
constexpr std::int64_t kBlockRows = 240;
constexpr std::int64_t kBlockCols = 384;

std::int64_t blocks(std::int64_t extent, std::int64_t block) {
  return (extent + block - 1) / block;
}

}  // namespace

std::string_view to_string(InstructionSet set) {
  switch (set) {
    case InstructionSet::portable:
      return "portable";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
  }
  return "";
}

// Exactly the -m flags of the modules in CMakeLists.txt.
bool processor_has(InstructionSet set) {
  if (set == InstructionSet::portable) return true;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (set == InstructionSet::avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

Expected<Gemm, std::string> Gemm::open(InstructionSet set, const std::filesystem::path& folder) {
  if (!processor_has(set)) {
    return Unexpected{"this processor has no " + std::string(to_string(set))};
  }
  const auto file = folder / module_name(set);
  void* const module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) return Unexpected{std::string(dlerror())};
  const auto function = reinterpret_cast<Function>(dlsym(module, "moegauge_gemm_abt"));
  if (!function) return Unexpected{file.string() + " has no moegauge_gemm_abt"};
  return Gemm(set, function);
}

Expected<Gemm, std::string> Gemm::open(InstructionSet set) {
  std::string why;
  for (const auto& folder : module_folders()) {
    auto opened = open(set, folder);
    if (opened) return opened;
    why += (why.empty() ? "" : "; ") + opened.error();
  }
  return Unexpected{why.empty() ? std::string("the executable's folder is not known") : why};
}

const Gemm& Gemm::best() {
  static const Gemm gemm = [] {
    std::string why;
    for (const auto set : kWidestFirst) {
      auto opened = open(set);
      if (opened) return *opened;
      why += (why.empty() ? "" : "; ") + opened.error();
    }
    throw InputError("moegauge_gemm_*.so", "no fp64 GEMM module can be opened (" + why + ")",
                     "they must lie beside the executable, where the build puts them");
  }();
  return gemm;
}

void Gemm::multiply(const ConstView& a, const ConstView& b, const View& c) const {
  if (c.rows == 0 || c.cols == 0) return;
  function_(c.rows, c.cols, a.cols, a.data, a.stride, b.data, b.stride, c.data, c.stride);
}

void Gemm::multiply(const ConstView& a, const ConstView& b, const View& c, ThreadPool& pool) const {
  const std::int64_t across = blocks(c.cols, kBlockCols);
  pool.parallel_for(blocks(c.rows, kBlockRows) * across, [&](std::int64_t i) {
    const std::int64_t row = i / across * kBlockRows;
    const std::int64_t col = i % across * kBlockCols;
    const std::int64_t rows = std::min(kBlockRows, c.rows - row);
    const std::int64_t cols = std::min(kBlockCols, c.cols - col);
    multiply({a.data + row * a.stride, rows, a.cols, a.stride},
             {b.data + col * b.stride, cols, b.cols, b.stride},
             {c.data + row * c.stride + col, rows, cols, c.stride});
  });
}

}  // namespace moegauge
