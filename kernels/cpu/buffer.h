// Page-aligned memory for weights and workspaces, in huge pages where the system gives them:
// streaming gigabytes through 4 KiB pages costs a TLB miss every 64 lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace moegauge::cpu {

struct BufferDeleter {
  std::size_t bytes = 0;
  void operator()(std::byte* p) const;
};
using Buffer = std::unique_ptr<std::byte[], BufferDeleter>;

// Zeroed on first touch, untouched so far; nullptr where the system has no such amount.
Buffer allocate(std::size_t bytes);

// A Buffer as an array; allocation failure throws std::bad_alloc.
template <typename T>
class Array {
 public:
  Array() = default;
  explicit Array(std::int64_t count);
  T* data() const { return reinterpret_cast<T*>(buffer_.get()); }
  std::int64_t size() const { return count_; }
  T& operator[](std::int64_t i) const { return data()[i]; }
  std::span<T> span() const { return {data(), static_cast<std::size_t>(count_)}; }

 private:
  Buffer buffer_;
  std::int64_t count_ = 0;
};

[[noreturn]] void throw_bad_alloc();

template <typename T>
Array<T>::Array(std::int64_t count)
    : buffer_(allocate(static_cast<std::size_t>(count > 0 ? count : 1) * sizeof(T))),
      count_(count) {
  if (!buffer_) throw_bad_alloc();
}

}  // namespace moegauge::cpu
