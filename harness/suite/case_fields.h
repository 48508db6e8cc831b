// The keys of a suite's case, and how one value of each is read.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/json/cursor.h"
#include "harness/suite/suite.h"

namespace moegauge {

// Where relative paths of a suite start, and what its models are.
struct SuiteContext {
  const std::filesystem::path& folder;
  const std::filesystem::path& root;
};

// One coordinate: how its key is spelt and one value of it stored.
struct CaseField {
  std::string key;
  std::function<void(const JsonCursor&, const SuiteContext&, CaseCoordinates&)> read;
};

// In the order in which products run, the last fastest. Those of single ops are not among them
// (harness/suite/own_fields.h).
const std::vector<CaseField>& case_fields();

// Every key that a case may have, those of single ops too.
std::vector<std::string> case_field_names();

// The whole layer, which is the default, then the single ops.
const std::vector<std::string>& op_names();

// Distributions of generated inputs.
const std::vector<std::string>& input_names();

// The value, which must be one of `names`; `what` says in the error what they are.
std::string listed(const JsonCursor& value, const std::vector<std::string>& names,
                   std::string_view what);

}  // namespace moegauge
