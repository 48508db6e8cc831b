#include "harness/json/document.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "reference/base/input_error.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;

// Feeds the parser and tells how many bytes it has taken, which the parser itself tells only when
// it fails.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  std::size_t* taken = nullptr;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    ++at;
    if (taken != nullptr) ++*taken;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at == other.at; }
  bool operator!=(const CountingIterator& other) const { return at != other.at; }
};

struct Place {
  std::size_t line = 1, column = 1;  // column in code points
};

Place place_of(std::string_view text, std::size_t byte) {
  Place place;
  for (const char c : text.substr(0, byte)) {
    if (c == '\n') {
      place = {place.line + 1, 1};
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
      ++place.column;
    }
  }
  return place;
}

// Builds the value, refuses what is not strict, and knows at any time where it is.
class Builder {
 public:
  Builder(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  // Returns whether the text was whole; throws InputError where it is wrong before its end.
  bool parse() {
    taken_ = 0;
    CountingIterator begin{text_.data(), &taken_}, end{text_.data() + text_.size(), nullptr};
    return Json::sax_parse(begin, end, this);
  }
  void look_for(const std::string& pointer) { wanted_ = &pointer; }

  Json root;
  std::size_t found_line = 0;  // of the pointer looked for
  std::size_t stopped_at = 0;  // bytes of a text that was cut

  // Events of nlohmann's parser.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string& digits) {
    if (digits.find_first_of(".eE") == std::string::npos) {
      fail_here("the integer " + digits + " in " + shown_pointer() + " does not fit 64 bits",
                "write a smaller number");
    }
    return add(value);
  }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    Frame& frame = frames_.back();
    if (!frame.seen.insert(name).second) {
      const std::string object = pointer_to(frames_.size() - 1);
      fail_here("duplicate key " + in_quotes(name) + " in " +
                    (object.empty() ? "the top object" : object),
                "keep one of the two");
    }
    frame.key = std::move(name);
    note_line();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) {
    if (position > text_.size()) {
      stopped_at = text_.size();
      drop_unfinished();
      return false;
    }
    fail_syntax(position == 0 ? 0 : position - 1, error);
  }
  // Where a text that is no JSON, or ends too early, is wrong.
  [[noreturn]] void fail_cut() const {
    const Place place = place_of(text_, text_.size());
    throw InputError(where_ + ":" + std::to_string(place.line) + ":" + std::to_string(place.column),
                     text_.find_first_not_of(" \t\r\n") == std::string_view::npos
                         ? "the file is empty"
                         : "the text ends in the middle of a value",
                     "a whole JSON value is expected");
  }

 private:
  struct Frame {
    Json* container = nullptr;
    std::string key = {};                       // of the member being read
    std::unordered_set<std::string> seen = {};  // keys so far
  };

  Json* insert(Json value) {
    last_was_number_ = value.is_number();
    if (frames_.empty()) {
      root = std::move(value);
      return &root;
    }
    Json& container = *frames_.back().container;
    if (container.is_array()) {
      container.push_back(std::move(value));
      note_line();
      return &container.back();
    }
    // Past ordered_map's own emplace, which would search all members again.
    auto& members = static_cast<std::vector<std::pair<const std::string, Json>>&>(
        container.get_ref<Json::object_t&>());
    members.emplace_back(frames_.back().key, std::move(value));
    return &members.back().second;
  }
  bool add(Json value) {
    insert(std::move(value));
    return true;
  }
  bool open(Json container) {
    if (frames_.size() >= static_cast<std::size_t>(max_json_depth)) {
      fail_here("nested deeper than " + std::to_string(max_json_depth) + " levels", "flatten it");
    }
    Json* opened = insert(std::move(container));
    frames_.push_back({.container = opened});
    return true;
  }
  bool close() {
    last_was_number_ = false;
    frames_.pop_back();
    return true;
  }

  // After a cut: elements of top-level members count as lines of the file, what is open below them
  // is unfinished, and so is a number that touches the end (more digits may have followed).
  void drop_unfinished() {
    if (frames_.size() > 2) {
      remove_last(*frames_[1].container);
      frames_.resize(2);
    } else if (last_was_number_ && !frames_.empty() &&
               std::string_view("0123456789+-.eE").find(text_.back()) != std::string_view::npos) {
      remove_last(*frames_.back().container);
    }
  }
  static void remove_last(Json& container) {
    if (container.is_array()) {
      container.erase(container.size() - 1);
    } else {
      auto& members = static_cast<std::vector<std::pair<const std::string, Json>>&>(
          container.get_ref<Json::object_t&>());
      members.pop_back();
    }
  }

  std::string pointer_to(std::size_t depth) const {
    std::string pointer;
    for (std::size_t i = 0; i < depth; ++i) {
      const Frame& frame = frames_[i];
      pointer +=
          frame.container->is_array()
              ? "/" + std::to_string(frame.container->empty() ? 0 : frame.container->size() - 1)
              : "/" + escaped_pointer_token(frame.key);
    }
    return pointer;
  }
  // Of the value about to be inserted.
  std::string shown_pointer() const {
    if (frames_.empty()) return "the top value";
    const Json& container = *frames_.back().container;
    if (container.is_object()) return pointer_to(frames_.size());
    return pointer_to(frames_.size() - 1) + "/" + std::to_string(container.size());
  }
  std::size_t line() const { return place_of(text_, taken_ == 0 ? 0 : taken_ - 1).line; }
  void note_line() {
    if (wanted_ != nullptr && found_line == 0 && pointer_to(frames_.size()) == *wanted_) {
      found_line = line();
    }
  }
  [[noreturn]] void fail_here(const std::string& wrong, const std::string& right) const {
    throw InputError(where_ + ":" + std::to_string(line()), wrong, right);
  }
  [[noreturn]] void fail_syntax(std::size_t byte, const nlohmann::detail::exception& error) const;

  std::string_view text_;
  const std::string& where_;
  const std::string* wanted_ = nullptr;
  std::size_t taken_ = 0;
  bool last_was_number_ = false;
  std::vector<Frame> frames_;
};

// nlohmann says "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error
// while parsing value - unexpected ']'; expected ..."; the part after the place is kept.
std::string parser_message(const nlohmann::detail::exception& error) {
  std::string_view text = error.what();
  if (const auto at = text.find("syntax error"); at != std::string_view::npos) {
    text.remove_prefix(at);
  } else if (const auto bracket = text.find("] "); bracket != std::string_view::npos) {
    text.remove_prefix(bracket + 2);
  }
  // The parser quotes all that it read of a token, which may be a whole file.
  const auto quote = text.find("; last read: ");
  const auto expected = text.rfind("; expected ");
  std::string message(text.substr(0, std::min(quote, text.size())));
  if (quote != std::string_view::npos && expected != std::string_view::npos && expected > quote) {
    message += text.substr(expected);
  }
  return message;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '+' || c == '.';
}

bool is_not_finite_word(std::string word) {
  if (word.starts_with('-') || word.starts_with('+')) word.erase(0, 1);
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word == "nan" || word == "infinity" || word == "inf";
}

// Says in the words of a person what the parser calls an invalid literal.
void Builder::fail_syntax(std::size_t byte, const nlohmann::detail::exception& error) const {
  const auto at = [&](std::size_t where) {
    const Place place = place_of(text_, where);
    return where_ + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  };
  std::size_t begin = byte, end = byte;
  while (begin > 0 && is_word(text_[begin - 1])) --begin;
  while (end < text_.size() && is_word(text_[end])) ++end;
  const std::string word(text_.substr(begin, end - begin));
  constexpr int number_overflow = 406;  // nlohmann's out_of_range for a double
  if (error.id == number_overflow) {
    throw InputError(at(begin), "the number " + in_quotes(word) + " overflows a double",
                     "write a number within +-1.8e308");
  }
  const std::string message = parser_message(error);
  const bool bad_word = message.find("invalid literal") != std::string::npos ||
                        message.find("invalid number") != std::string::npos;
  if (bad_word && is_not_finite_word(word)) {
    throw InputError(at(begin), word + " is no JSON number", "write a finite number or null");
  }
  if (bad_word && (text_[byte] == '/' || (byte > 0 && text_[byte - 1] == '/'))) {
    throw InputError(at(byte), "JSON has no comments", "put the words into a \"description\"");
  }
  throw InputError(at(byte), message, "");
}

}  // namespace

JsonDocument JsonDocument::parse(std::string text, std::string where) {
  JsonDocument document;
  document.where_ = std::move(where);
  document.text_ = std::move(text);
  Builder builder(document.text_, document.where_);
  if (!builder.parse()) builder.fail_cut();
  document.root_ = std::make_shared<const Json>(std::move(builder.root));
  return document;
}

JsonDocument JsonDocument::read(const std::filesystem::path& file) {
  return parse(read_text_file(file), file.string());
}

std::size_t JsonDocument::line_of(const std::string& pointer) const {
  if (pointer.empty()) return 1;
  Builder builder(text_, where_);
  builder.look_for(pointer);
  builder.parse();
  return std::max<std::size_t>(builder.found_line, 1);
}

CutJson parse_cut_json(std::string_view text, const std::string& where) {
  Builder builder(text, where);
  CutJson cut;
  if (!builder.parse()) {
    const Place place = place_of(text, builder.stopped_at);
    cut.stopped = "line " + std::to_string(place.line) + ", column " + std::to_string(place.column);
  }
  cut.root = std::make_shared<Json>(std::move(builder.root));
  return cut;
}

}  // namespace moegauge
