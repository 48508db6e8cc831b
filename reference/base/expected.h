// A value or the reason there is none. The shape of C++23's std::expected (P0323), reduced to what
// this project uses, because the compilers it supports (GCC 12) offer that only beyond C++20.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

namespace moegauge {

template <typename E>
struct Unexpected {
  E error;
};
template <typename E>
Unexpected(E) -> Unexpected<E>;

template <typename T, typename E>
class [[nodiscard]] Expected {
  static_assert(!std::is_same_v<T, E>, "value and error must be told apart by type");

 public:
  Expected(T value)
      : state_(std::in_place_index<0>, std::move(value)) {
  }  // NOLINT: converts, as std::expected does
  template <typename G>
  Expected(Unexpected<G> error)
      : state_(std::in_place_index<1>, std::move(error.error)) {}  // NOLINT: as above

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }

  // Each requires the matching state; std::bad_variant_access otherwise.
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const E& error() const { return std::get<1>(state_); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, E> state_;
};

}  // namespace moegauge
