// A library opened at run time, so that one binary starts on machines with and without it.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "reference/base/expected.h"

namespace moegauge::cuda {

// Why something of the CUDA stack is not there, as a sentence for `doctor` and `list`.
struct Missing {
  std::string sentence;
};

class SharedLibrary {
 public:
  // Tries the names in order with the loader's own search path. On failure the sentence names the
  // first: "no driver (libcuda.so.1 not found)" with `what` = "driver".
  static Expected<SharedLibrary, Missing> open(const char* what,
                                               std::span<const char* const> names);

  SharedLibrary(SharedLibrary&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}
  SharedLibrary& operator=(SharedLibrary&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(name_, other.name_);
    return *this;
  }
  ~SharedLibrary();

  const std::string& name() const { return name_; }

  // Fills one function pointer; false where the library has no such symbol.
  template <typename Function>
  bool find(const char* symbol, Function*& out) const {
    out = reinterpret_cast<Function*>(find_symbol(symbol));
    return out != nullptr;
  }

 private:
  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* find_symbol(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace moegauge::cuda
