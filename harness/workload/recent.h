// The few values that were asked for last, each made once: an expert's matrix is asked for block of
// rows by block of rows, from several threads, and would be made anew for each.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace moegauge {

template <typename Key, typename Value>
class Recent {
 public:
  // make() -> Value. One value is made at a time.
  template <typename Make>
  std::shared_ptr<const Value> get(const Key& key, Make&& make) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, value] : entries_) {
      if (known == key) return value;
    }
    auto made = std::make_shared<const Value>(make());
    if (entries_.size() == kKept) entries_.pop_front();
    entries_.emplace_back(key, made);
    return made;
  }

 private:
  static constexpr std::size_t kKept = 4;
  std::mutex mutex_;
  std::deque<std::pair<Key, std::shared_ptr<const Value>>> entries_;
};

}  // namespace moegauge
