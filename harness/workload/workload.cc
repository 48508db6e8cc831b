#include "harness/workload/workload.h"

#include <utility>

#include "harness/checkpoint/checkpoint_experts.h"
#include "harness/suite/own_fields.h"
#include "harness/workload/drawn_rows.h"
#include "harness/workload/problem.h"
#include "harness/workload/replay.h"
#include "harness/workload/tensor_form.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

Distribution parse_distribution(const CaseCoordinates& c) {
  if (const auto distribution = distribution_from(c.inputs)) return *distribution;
  throw InputError(case_id(c), "no inputs are called " + c.inputs,
                   "gaussian, heavy_tail, uniform, degenerate, exact or file:PATH.safetensors");
}

class DrawnWorkload final : public Workload {
 public:
  DrawnWorkload(const Problem& problem, std::int64_t fused, const Generator& generator,
                Weights weights)
      : problem_(problem), fused_(fused), generator_(generator), weights_(std::move(weights)) {}

  const ExpertSource& experts() const override { return *weights_.experts; }
  GivenRows given_rows() const override { return GivenRows::none; }
  OwnedInputs draw(const std::string& routing, std::int64_t tokens,
                   std::uint64_t stream) const override {
    return drawn_rows(problem_, fused_, generator_, routing, tokens, stream);
  }
  Generator generator() const override { return generator_; }
  std::string quantization_of() const override { return weights_.quantization_of; }
  std::optional<TensorDtype> originals(Role) const override { return weights_.originals; }

 private:
  const Problem problem_;
  const std::int64_t fused_;
  const Generator generator_;
  const Weights weights_;
};

Weights make_weights(const CaseCoordinates& c, const Problem& problem,
                     const std::filesystem::path& root, const Generator& generator,
                     int unit_spread) {
  if (c.layer < 0) {
    // Every distribution gives values of the layer's own type.
    return {generated_experts(problem.layer, problem.scheme, generator.distribution, generator.seed,
                              unit_spread),
            "weights and activations before quantisation", tensor_dtype_of(problem.layer.dtype)};
  }
  auto experts =
      open_checkpoint({checkpoint_folder(c), c.layer}, load_model(c.model, root), problem);
  std::string text = experts->quantization_of();
  const auto originals = experts->originals();
  return {std::move(experts), std::move(text), originals};
}

}  // namespace

std::unique_ptr<Workload> make_workload(const CaseCoordinates& c, const Problem& problem,
                                        const std::filesystem::path& root,
                                        const WorkloadSettings& settings) {
  const auto path = replayed_file(c);
  const Model model = model_of(c, root);
  const std::int64_t fused = fused_experts(c, model);
  if (!path) {
    const Generator generator = {parse_distribution(c), settings.seed};
    return std::make_unique<DrawnWorkload>(
        problem, fused, generator, make_weights(c, problem, root, generator, settings.unit_spread));
  }
  auto file = std::make_unique<ReplayFile>(*path);
  file->require_layer_names();
  const Generator generator = replay_generator(*file, settings.seed);
  return replayed_workload(std::move(file), model, problem, fused, generator,
                           make_weights(c, problem, root, generator, settings.unit_spread));
}

}  // namespace moegauge
