// A processor that is the emulator. Memory is the CPU's, each buffer of its own, so that the
// address sanitiser sees an access beyond one.
#pragma once

#include "kernels/hip/processor.h"

namespace moegauge::hip {

class EmulatedProcessor final : public Processor {
 public:
  // `seed`: of the order of threads and blocks, see emulator/block.h.
  EmulatedProcessor(const Architecture& architecture, std::uint64_t seed)
      : architecture_(architecture), seed_(seed) {}

  const Architecture& architecture() const override { return architecture_; }
  void* allocate(std::size_t bytes) const override;
  void release(void* memory) const noexcept override;
  void upload(void* to, std::span<const std::byte> from) const override;
  void download(std::span<std::byte> to, const void* from) const override;
  void copy(void* to, const void* from, std::size_t bytes) const override;
  void fill(void* to, unsigned char byte, std::size_t bytes) const override;
  // Seconds of the CPU's clock: they say nothing about a GPU.
  double run(std::span<const Call> calls) const override;

 private:
  const Architecture& architecture_;
  std::uint64_t seed_;
};

}  // namespace moegauge::hip
