// What a layer asks of a device: an AMD GPU through its runtime, or the emulator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/hip/architecture.h"
#include "kernels/hip/device/layer_args.h"

namespace moegauge::hip {

struct HipFault : std::exception {
  explicit HipFault(Fault what_happened) : fault(std::move(what_happened)) {}
  const char* what() const noexcept override { return fault.sentence.c_str(); }
  Fault fault;
};

// The fault that `work` throws, or nothing.
template <typename Work>
std::optional<Fault> guarded(Work&& work) {
  try {
    work();
  } catch (const HipFault& e) {
    return e.fault;
  } catch (const std::exception& e) {
    return Fault{FaultKind::error, e.what()};
  }
  return std::nullopt;
}

// One kernel of a layer.
struct KernelLaunch {
  std::string kernel;  // its name in the code object
  int blocks = 0, threads = 0;
};

// A layer's launches, to be made several times: with these arguments, in this order.
struct Call {
  std::span<const KernelLaunch> launches;
  moe::LayerArgs args;
};

// All members throw HipFault. What is asked for happens in order; downloads and timed calls wait.
class Processor {
 public:
  virtual ~Processor() = default;
  virtual const Architecture& architecture() const = 0;
  virtual void* allocate(std::size_t bytes) const = 0;
  virtual void release(void* memory) const noexcept = 0;
  virtual void upload(void* to, std::span<const std::byte> from) const = 0;
  virtual void download(std::span<std::byte> to, const void* from) const = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) const = 0;
  virtual void fill(void* to, unsigned char byte, std::size_t bytes) const = 0;
  // Bytes that turn over its caches when they are filled; 0 where it has none to speak of.
  virtual std::size_t flush_bytes() const { return 0; }
  // Seconds by the device's own clock.
  virtual double run(std::span<const Call> calls) const = 0;
  // The same as one graph, where that is served.
  virtual bool serves_graphs() const { return false; }
  virtual double run_graph(std::span<const Call> calls) const { return run(calls); }
};

// Memory of a processor, which outlives it. Empty buffers have no memory.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Processor& processor, std::size_t bytes)
      : processor_(&processor),
        memory_(bytes == 0 ? nullptr : processor.allocate(bytes)),
        bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (memory_ != nullptr) processor_->release(memory_);
  }

  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }
  std::size_t bytes() const { return bytes_; }
  void upload(std::span<const std::byte> from, std::size_t at = 0) const {
    if (!from.empty()) processor_->upload(as<std::byte>() + at, from);
  }
  void fill(unsigned char byte) const {
    if (bytes_ != 0) processor_->fill(memory_, byte, bytes_);
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(processor_, other.processor_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
  }
  const Processor* processor_ = nullptr;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace moegauge::hip
