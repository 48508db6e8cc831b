// For the files of this folder: how a scheme family presents itself. CMakeLists.txt lists the
// families, one line each; NAME.cc defines NAME_family().
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/schemes/scheme.h"

namespace moegauge {

// The options of one name, each to be taken by the family that knows it.
class SchemeOptions {
 public:
  explicit SchemeOptions(std::vector<std::string_view> options) : left_(std::move(options)) {}
  // Whether the option was given; a second call says no, so that repeated options are left over.
  bool take(std::string_view option);
  bool all_taken() const { return left_.empty(); }

 private:
  std::vector<std::string_view> left_;
};

struct SchemeFamily {
  std::string_view name;
  std::string_view options;  // as scheme_options() shows them
  // nullptr where the options contradict each other.
  std::unique_ptr<const Scheme> (*make)(SchemeOptions& options);
};

// Every family in the order of the list in CMakeLists.txt, which generates the definition.
std::vector<SchemeFamily> all_families();

}  // namespace moegauge
