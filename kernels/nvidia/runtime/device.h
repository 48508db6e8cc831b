// Owners of what the driver hands out. Inside this backend a failed call throws CudaFault; the
// backend's seam functions turn it into a Fault value (see `guarded`).
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/nvidia/runtime/driver.h"

namespace moegauge::cuda {

class CudaFault : public std::exception {
 public:
  explicit CudaFault(Fault fault) : fault_(std::move(fault)) {}
  const Fault& fault() const { return fault_; }
  const char* what() const noexcept override { return fault_.sentence.c_str(); }

 private:
  Fault fault_;
};

// The driver, where it is known to be there; CudaFault with the reason where it is not.
const Driver& require_driver();
// Throws CudaFault naming the call unless `result` is CUDA_SUCCESS.
void check(CUresult result, const char* call);

// Runs `body` and gives its fault, if it threw one.
template <typename Body>
std::optional<Fault> guarded(Body&& body) {
  try {
    body();
  } catch (const CudaFault& failed) {
    return failed.fault();
  }
  return std::nullopt;
}

// One GPU and its primary context, kept for the life of the process.
class Gpu {
 public:
  // Retains the context and makes it current on this thread.
  static const Gpu& get(int ordinal);

  const std::string& name() const { return name_; }
  const std::string& pci_bus_id() const { return pci_bus_id_; }  // "00000000:3b:00.0"
  int compute_capability() const { return capability_; }         // 90 for Hopper
  int multiprocessors() const { return multiprocessors_; }
  std::int64_t memory_bytes() const { return memory_bytes_; }
  std::int64_t l2_bytes() const { return l2_bytes_; }
  std::int64_t shared_bytes_per_block() const { return shared_bytes_; }  // opt-in maximum
  void make_current() const;
  std::int64_t free_bytes() const;

 private:
  explicit Gpu(int ordinal);
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::string name_, pci_bus_id_;
  int capability_ = 0, multiprocessors_ = 0;
  std::int64_t memory_bytes_ = 0, l2_bytes_ = 0, shared_bytes_ = 0;
};

class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  CUstream get() const { return stream_; }
  void synchronize() const;

 private:
  CUstream stream_ = nullptr;
};

class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(const Stream& stream) const;
  // Waits for this event and returns the seconds since `earlier`.
  double seconds_since(const Event& earlier) const;

 private:
  CUevent event_ = nullptr;
};

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes);
  Buffer(Buffer&& other) noexcept
      : pointer_(std::exchange(other.pointer_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(pointer_, other.pointer_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer();

  CUdeviceptr get() const { return pointer_; }
  std::size_t bytes() const { return bytes_; }
  // Ordered on the stream; the host memory must stay until it is synchronised.
  void upload(const Stream& stream, std::span<const std::byte> from, std::size_t at = 0) const;
  void download(const Stream& stream, std::span<std::byte> to, std::size_t at = 0) const;
  void copy_from(const Stream& stream, const Buffer& other) const;
  void fill(const Stream& stream, unsigned char byte) const;

 private:
  CUdeviceptr pointer_ = 0;
  std::size_t bytes_ = 0;
};

// What was recorded on a stream, ready to be replayed.
class Graph {
 public:
  // Captures the launches that `record` makes on `stream`. Nothing in it may synchronise.
  template <typename Record>
  static Graph capture(const Stream& stream, Record&& record) {
    begin(stream);
    try {
      record();
    } catch (...) {
      abandon(stream);
      throw;
    }
    return end(stream);
  }
  Graph(Graph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(executable_, other.executable_);
    return *this;
  }
  ~Graph();
  void launch(const Stream& stream) const;

 private:
  explicit Graph(CUgraphExec executable) : executable_(executable) {}
  static void begin(const Stream& stream);
  static void abandon(const Stream& stream) noexcept;
  static Graph end(const Stream& stream);
  CUgraphExec executable_ = nullptr;
};

struct LaunchShape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block = 1;
  unsigned shared_bytes = 0;
  unsigned cluster = 1;
  // Programmatic dependent launch: may start before the kernel ahead of it in the stream ends; it
  // waits for that one's memory itself (griddepcontrol.wait).
  bool overlaps_previous = false;
};

// A loaded cubin and one kernel in it.
class Kernel {
 public:
  Kernel(const std::string& image, const std::string& name);
  ~Kernel();
  Kernel(Kernel&& other) noexcept
      : module_(std::exchange(other.module_, nullptr)), function_(other.function_) {}
  Kernel(const Kernel&) = delete;

  // Raises the dynamic shared memory limit; throws where the device has less.
  void allow_shared_bytes(std::size_t bytes) const;
  // Clusters of `shape` that the device can hold at once.
  int most_clusters(const LaunchShape& shape) const;
  // `arguments`: pointers to each argument, in order, as cuLaunchKernel takes them.
  void launch(const Stream& stream, const LaunchShape& shape, std::span<void*> arguments) const;

 private:
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

}  // namespace moegauge::cuda
