#include "kernels/hip/emulator/emulated_processor.h"

#include <chrono>
#include <cstring>
#include <new>

#include "kernels/hip/emulator/block.h"
#include "kernels/hip/emulator/kernels.h"

namespace moegauge::hip {
namespace {

constexpr std::align_val_t alignment{16};  // of the widest access

}  // namespace

void* EmulatedProcessor::allocate(std::size_t bytes) const {
  return ::operator new(bytes, alignment);
}
void EmulatedProcessor::release(void* memory) const noexcept {
  ::operator delete(memory, alignment);
}
void EmulatedProcessor::upload(void* to, std::span<const std::byte> from) const {
  std::memcpy(to, from.data(), from.size());
}
void EmulatedProcessor::download(std::span<std::byte> to, const void* from) const {
  std::memcpy(to.data(), from, to.size());
}
void EmulatedProcessor::copy(void* to, const void* from, std::size_t bytes) const {
  std::memcpy(to, from, bytes);
}
void EmulatedProcessor::fill(void* to, unsigned char byte, std::size_t bytes) const {
  std::memset(to, byte, bytes);
}

double EmulatedProcessor::run(std::span<const Call> calls) const {
  const auto begin = std::chrono::steady_clock::now();
  for (const Call& call : calls) {
    for (const KernelLaunch& launch : call.launches) {
      const emulator::Kernel* kernel = emulator::find_kernel(architecture_.name, launch.kernel);
      if (kernel == nullptr)
        throw HipFault({FaultKind::error, "there is no kernel " + launch.kernel});
      emulator::run_grid({.blocks = launch.blocks,
                          .threads = launch.threads,
                          .lanes = architecture_.lanes,
                          .shared_limit = static_cast<std::size_t>(architecture_.shared_bytes),
                          .fnuz = architecture_.fnuz,
                          .seed = seed_},
                         [&] { kernel->run(call.args); });
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace moegauge::hip
