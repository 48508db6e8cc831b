#include "harness/workload/op_tensors.h"

#include <algorithm>
#include <utility>

#include "harness/workload/op_problem.h"
#include "harness/workload/replay.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

Generator generator_of(const CaseCoordinates& c, const ReplayFile* file, std::uint64_t seed) {
  if (file != nullptr) return replay_generator(*file, seed);
  if (const auto distribution = distribution_from(c.inputs)) return {*distribution, seed};
  throw InputError(case_id(c), "no inputs are called " + c.inputs,
                   "gaussian, heavy_tail, uniform, degenerate, exact or file:PATH.safetensors");
}

std::unique_ptr<ReplayFile> file_of(const CaseCoordinates& c) {
  const auto path = replayed_file(c);
  return path ? std::make_unique<ReplayFile>(*path) : nullptr;
}

// A tensor of the file in the type that the op wants.
Tensor read(const ReplayFile& file, const TensorInfo& info, const TensorSpec& spec) {
  Tensor tensor(spec);
  if (spec.type == TensorType::fp32) {
    file.read_floats(info, 0, tensor.as<float>());
  } else {
    file.read_bytes(info, 0, tensor.bytes);
  }
  return tensor;
}

}  // namespace

OpTensors::OpTensors(const CaseCoordinates& c, const WorkloadSettings& settings)
    : file_(file_of(c)),
      generator_(generator_of(c, file_.get(), settings.seed)),
      unit_spread_(settings.unit_spread) {}

OpDraw OpTensors::draw(const std::string& routing, const OpProblem& problem,
                       std::uint64_t stream) const {
  return {.distribution = generator_.distribution,
          .law = parse_routing_law(routing, problem.layer),
          .seed = generator_.seed,
          .stream = stream,
          .unit_spread = unit_spread_};
}

GivenRows OpTensors::given_inputs(const OpProblem& problem) const {
  if (file_ == nullptr) return GivenRows::none;
  const auto count = std::ranges::count_if(
      problem.inputs, [this](const TensorSpec& spec) { return file_->find(spec.name) != nullptr; });
  return count == 0                            ? GivenRows::none
         : count == std::ssize(problem.inputs) ? GivenRows::all
                                               : GivenRows::some;
}

bool OpTensors::gives_any(const OpProblem& problem) const {
  return given_inputs(problem) != GivenRows::none ||
         (file_ != nullptr && std::ranges::any_of(problem.weights, [this](const TensorSpec& spec) {
            return file_->find(spec.name) != nullptr;
          }));
}

std::vector<Tensor> OpTensors::given(const std::vector<TensorSpec>& specs) const {
  std::vector<Tensor> all;
  if (file_ == nullptr) return all;
  for (const TensorSpec& spec : specs) {
    if (const TensorInfo* info = file_->find(spec.name)) all.push_back(read(*file_, *info, spec));
  }
  return all;
}

std::vector<Tensor> OpTensors::weights(const Op& op, const OpProblem& problem,
                                       const OpDraw& draw) const {
  std::vector<Tensor> some = given(problem.weights);
  if (some.size() == problem.weights.size()) return some;
  std::vector<Tensor> all = op.draw_weights(problem, draw);
  for (Tensor& tensor : some) {
    const auto same = [&](const Tensor& t) { return t.spec.name == tensor.spec.name; };
    *std::ranges::find_if(all, same) = std::move(tensor);
  }
  return all;
}

std::vector<Tensor> OpTensors::inputs(const Op& op, const OpProblem& problem,
                                      const OpDraw& draw) const {
  return op.draw_beside(problem, draw, given(problem.inputs));
}

}  // namespace moegauge
