#include "harness/history/utc.h"

#include <array>
#include <chrono>
#include <cstdio>

namespace moegauge {
namespace {

// Digits at `at` as a number; -1 where there are others.
int digits(std::string_view text, std::size_t at, std::size_t count) {
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = 10 * value + (text[i] - '0');
  }
  return value;
}

}  // namespace

std::optional<std::int64_t> utc_seconds(std::string_view text) {
  using namespace std::chrono;
  const bool zulu = text.size() == 20 && text[19] == 'Z';
  if (!zulu && text.size() != 25) return std::nullopt;
  if (text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const int hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  if (year < 0 || month < 0 || day < 0) return std::nullopt;
  const year_month_day date{std::chrono::year(year),
                            std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 60) {
    return std::nullopt;
  }
  std::int64_t offset = 0;
  if (!zulu) {
    const int hours = digits(text, 20, 2), minutes = digits(text, 23, 2);
    if ((text[19] != '+' && text[19] != '-') || text[22] != ':' || hours < 0 || hours > 23 ||
        minutes < 0 || minutes > 59) {
      return std::nullopt;
    }
    offset = (text[19] == '-' ? -1 : 1) * (hours * std::int64_t{3600} + minutes * std::int64_t{60});
  }
  const std::int64_t days = sys_days(date).time_since_epoch().count();
  return days * 86400 + hour * std::int64_t{3600} + minute * std::int64_t{60} + second - offset;
}

std::string utc_text(std::int64_t seconds) {
  using namespace std::chrono;
  const std::int64_t day = (seconds >= 0 ? seconds : seconds - 86399) / 86400;
  const year_month_day date{sys_days(days(day))};
  const std::int64_t rest = seconds - day * 86400;
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(rest / 3600),
                static_cast<int>(rest / 60 % 60), static_cast<int>(rest % 60));
  return text.data();
}

std::string utc_date(std::int64_t seconds) { return utc_text(seconds).substr(0, 10); }

}  // namespace moegauge
