// Where a layer's numbers come from: weights, and rows of x with their experts. Generated ones, and
// those that people have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "harness/suite/suite.h"
#include "harness/tensors/tensor_dtype.h"
#include "kernels/backend.h"
#include "reference/inputs.h"

namespace moegauge {

// What of x, topk_ids and topk_weights is given, and so the same in every draw.
enum class GivenRows : std::uint8_t { none, some, all };

// How what is not given is made.
struct Generator {
  Distribution distribution = Distribution::gaussian;
  std::uint64_t seed = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;

  virtual const ExpertSource& experts() const = 0;
  virtual GivenRows given_rows() const = 0;
  // Rows for a routing law, `stream` telling independent draws apart. Throws InputError where rows
  // are given and not as many as `tokens`.
  virtual OwnedInputs draw(const std::string& routing, std::int64_t tokens,
                           std::uint64_t stream) const = 0;
  virtual Generator generator() const = 0;
  // What error.quantization compares with, in words.
  virtual std::string quantization_of() const = 0;
  // The element type that holds the weights before quantisation without loss; nothing where only
  // quantised ones are known.
  virtual std::optional<TensorDtype> originals(Role role) const = 0;
};

// Weights that are not in a file of tensors: generated, or a checkpoint's.
struct Weights {
  std::unique_ptr<ExpertSource> experts;
  std::string quantization_of;           // Workload's
  std::optional<TensorDtype> originals;  // Workload's, of both tensors
};

struct WorkloadSettings {
  std::uint64_t seed = 0;
  int unit_spread = 0;  // of generated_experts; not 0 in mutation tests
};

// `problem` is that of the case (problem.h); `root` the folder that holds suites/. Throws
// InputError.
std::unique_ptr<Workload> make_workload(const CaseCoordinates& c, const Problem& problem,
                                        const std::filesystem::path& root,
                                        const WorkloadSettings& settings);

}  // namespace moegauge
