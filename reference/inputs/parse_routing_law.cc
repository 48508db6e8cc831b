#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string>
#include <utility>

#include "reference/base/input_error.h"
#include "reference/base/text_file.h"
#include "reference/inputs.h"

namespace moegauge {
namespace {

using Kind = RoutingLaw::Kind;

constexpr std::string_view kLaws = "uniform, balanced, single, zipf:S, dirichlet:A or a trace file";

template <typename Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

constexpr double kLargestParameter = 1e6;

Expected<std::optional<RoutingLaw>, BadRouting> parse_parameter(Kind kind, std::string_view text,
                                                                std::string_view parameter) {
  RoutingLaw law{.kind = kind};
  const bool zipf = kind == Kind::zipf;
  const bool fits = parse_number(parameter, law.parameter) && law.parameter <= kLargestParameter &&
                    (zipf ? law.parameter >= 0 : law.parameter > 0);
  if (fits) return std::optional(law);
  return Unexpected{BadRouting{
      "'" + std::string(text) + "' has no usable parameter",
      zipf ? "zipf:S with S from 0 to 1e6, as zipf:1.2" : "dirichlet:A with A above 0 to 1e6"}};
}

// A binary file must not end the message, nor act on the terminal.
std::string printable(std::string_view text) {
  std::string shown(text.substr(0, 40));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7E) c = '?';
  }
  return shown;
}

class TraceLine {
 public:
  TraceLine(std::string where, const Layer& layer) : where_(std::move(where)), layer_(layer) {}

  // Appends the ids of one line; nothing for a blank or a comment.
  void read(std::string_view line, std::vector<std::int32_t>& out) const {
    line = line.substr(0, line.find('#'));
    constexpr std::string_view separators = " \t\r,;";
    std::int64_t count = 0;
    for (auto begin = line.find_first_not_of(separators); begin != std::string_view::npos;
         begin = line.find_first_not_of(separators, begin)) {
      const auto end = std::min(line.find_first_of(separators, begin), line.size());
      out.push_back(id(line.substr(begin, end - begin)));
      ++count;
      begin = end;
    }
    if (count != 0 && count != layer_.top_k) {
      throw InputError(where_, std::to_string(count) + " ids",
                       std::to_string(layer_.top_k) + " (top_k) on every line");
    }
  }

 private:
  std::int32_t id(std::string_view text) const {
    std::int32_t value = 0;
    if (!parse_number(text, value) || value < -1 || value >= layer_.experts) {
      throw InputError(where_, "'" + printable(text) + "' is not an expert id",
                       "0 to " + std::to_string(layer_.experts - 1) + ", or -1 for a dropped pair");
    }
    return value;
  }

  std::string where_;
  const Layer& layer_;
};

RoutingLaw read_trace(const std::string& path, const Layer& layer) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw InputError("routing", "'" + printable(path) + "' is neither a routing law nor a file",
                     std::string(kLaws));
  }
  const std::string text = read_text_file(path);
  RoutingLaw law{.kind = Kind::trace};
  std::int64_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    TraceLine(path + ":" + std::to_string(number), layer)
        .read(std::string_view(text).substr(begin, end - begin), law.trace);
    begin = end + 1;
  }
  if (law.trace.empty()) throw InputError(path, "holds no ids", "one line of top_k ids per token");
  return law;
}

}  // namespace

Expected<std::optional<RoutingLaw>, BadRouting> routing_law_named(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Kind>, 3> plain = {
      {{"uniform", Kind::uniform}, {"balanced", Kind::balanced}, {"single", Kind::single}}};
  for (const auto& [name, kind] : plain) {
    if (text == name) return std::optional(RoutingLaw{.kind = kind});
  }
  constexpr std::array<std::pair<std::string_view, Kind>, 2> with_parameter = {
      {{"zipf", Kind::zipf}, {"dirichlet", Kind::dirichlet}}};
  for (const auto& [name, kind] : with_parameter) {
    if (text == name) return parse_parameter(kind, text, "");
    if (text.starts_with(name) && text.substr(name.size()).starts_with(":")) {
      return parse_parameter(kind, text, text.substr(name.size() + 1));
    }
  }
  return std::optional<RoutingLaw>();
}

RoutingLaw parse_routing_law(std::string_view text, const Layer& layer) {
  auto law = routing_law_named(text);
  if (!law) throw InputError("routing", law.error().wrong, law.error().right);
  return *law ? **law : read_trace(std::string(text), layer);
}

}  // namespace moegauge
