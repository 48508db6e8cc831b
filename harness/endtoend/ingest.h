// From files to the rows of a result: which reader, which rows, what the files do not say.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/result/end_to_end.h"

namespace moegauge {

struct NamedText {
  std::string name = {}, text = {};
};

// What the person who ingests knows and the files do not say.
struct IngestOptions {
  std::string variant = {};                        // only rows of this one
  std::string model = {};                          // in place of what the files say
  std::map<std::string, std::string> labels = {};  // for every row
  std::optional<std::int64_t> gpus = {};           // throughput per GPU is over so many
  std::optional<std::int64_t> questions = {};      // scores without standard error are of so many
};

// By the form of the text, not the file's name. Throws InputError.
std::vector<EndToEndRow> read_rows(const NamedText& file);

// Rows of all files. Logs of single questions join the score that they are of. What appears more
// than once is told apart by the label `variant`: 1, 2, ... in the order in which it stands.
std::vector<EndToEndRow> ingest(std::span<const NamedText> files, const IngestOptions& options);

}  // namespace moegauge
