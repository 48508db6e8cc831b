#include "kernels/cublaslt/layer_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/cublaslt/layer_buffers.h"
#include "kernels/cublaslt/matmul.h"
#include "kernels/cublaslt/program.h"
#include "kernels/nvidia/runtime/prepare.h"
#include "kernels/nvidia/runtime/this_gpu.h"
#include "reference/base/fnv1a.h"

namespace moegauge::cublaslt {

using cuda::Buffer;
using cuda::guarded;
using cuda::Slot;
using cuda::Stream;

namespace {

using RowCounts = std::vector<std::int32_t>;

// What the plans of one layer share, kept as long as one of them lives.
struct Resident {
  Resident(const cuda::Gpu& on, const Problem& asked, const LibraryScheme& served)
      : gpu(on),
        problem(asked),
        scheme(served),
        flush(2 * static_cast<std::size_t>(on.l2_bytes())) {}

  const cuda::Gpu& gpu;
  const Problem problem;
  const LibraryScheme& scheme;
  const Stream stream;
  std::vector<WeightSet> weights;
  const Buffer flush;  // larger than the L2 cache, for Cache::cold
};

MatmulFormat matmul_format(const Problem& problem, const LibraryScheme& scheme, Role role) {
  const MatrixShape shape = weight_shape(problem.layer, role);
  const bool wide = role == Role::w13 && keeps_wide_sums(problem.layer);
  return {.m = shape.rows,
          .k = shape.cols,
          .element_bytes = scheme.element_bytes,
          .scaling = scheme.scaling,
          .dtype = problem.layer.dtype,
          .out = wide ? SumType::fp32 : SumType::activation_dtype};
}

constexpr std::int64_t rounded_to_four(std::int64_t rows) { return (rows + 3) / 4 * 4; }

class LibraryPlan final : public Plan {
 public:
  LibraryPlan(std::shared_ptr<const Resident> resident, std::int64_t tokens, int slots)
      : resident_(std::move(resident)),
        tokens_(tokens),
        program_(resident_->problem, resident_->scheme),
        buffers_(resident_->problem, resident_->scheme, tokens, resident_->stream),
        gemm1_(matmul_format(resident_->problem, resident_->scheme, Role::w13)),
        gemm2_(matmul_format(resident_->problem, resident_->scheme, Role::w2)),
        slot_rows_(static_cast<std::size_t>(slots)),
        // One turn of slots and weight sets: a graph has hundreds of launches a call.
        calls_(resident_->stream, resident_->flush, static_cast<std::size_t>(slots),
               resident_->weights.size(), 1) {
    for (int i = 0; i < slots; ++i) slots_.emplace_back(layer(), tokens);
    for (RowCounts& rows : slot_rows_)
      rows.resize(static_cast<std::size_t>(layer().local_experts()));
    identity_ = {.executed_scheme = resident_->problem.scheme->name(),
                 .numerics = numerics_of(layer(), resident_->scheme),
                 .hash = fnv1a_hex(program_.hash() + " " + library_name())};
  }

  const KernelIdentity& identity() const override { return identity_; }
  int slots() const override { return static_cast<int>(slots_.size()); }

  std::optional<Fault> set_inputs(int slot, const LayerInputs& inputs) override {
    return guarded([&] {
      resident_->gpu.make_current();
      const auto at = static_cast<std::size_t>(slot);
      slots_.at(at).set_inputs(stream(), inputs);
      slot_rows_.at(at) = count_rows(layer(), inputs.topk_ids);
      calls_.forget_graphs();  // they were captured for the rows of before
    });
  }

  std::optional<Fault> poison() override {
    return guarded([&] {
      resident_->gpu.make_current();
      buffers_.poison(stream());
      for (const Slot& slot : slots_) slot.y.fill(stream(), 0xff);
      stream().synchronize();
    });
  }

  Expected<double, Fault> run(const RunRequest& request) override {
    double seconds = 0;
    auto fault = guarded([&] {
      resident_->gpu.make_current();
      seconds =
          calls_.run(request, [this](std::int64_t call, const RunRequest& r) { launch(call, r); });
    });
    if (fault) return Unexpected{std::move(*fault)};
    return seconds;
  }

  // The host's wait for the counts is part of `prepare`.
  Expected<std::map<std::string, double>, Fault> stage_seconds(const RunRequest& request) override {
    std::map<std::string, double> seconds;
    auto fault = guarded([&] {
      resident_->gpu.make_current();
      seconds = calls_.stage_seconds(
          request, [this](std::int64_t call, const RunRequest& r, cuda::StageClock& clock) {
            launch(call, r, &clock);
          });
    });
    if (fault) return Unexpected{std::move(*fault)};
    return seconds;
  }

  std::optional<DeviceState> state() const override { return cuda::state_of(resident_->gpu); }

  std::optional<Fault> fetch(int slot, std::span<std::uint16_t> y) override {
    return guarded([&] {
      resident_->gpu.make_current();
      slots_.at(static_cast<std::size_t>(slot)).y.download(stream(), std::as_writable_bytes(y));
      stream().synchronize();
    });
  }

 private:
  const Layer& layer() const { return resident_->problem.layer; }
  const LibraryScheme& scheme() const { return resident_->scheme; }
  const Stream& stream() const { return resident_->stream; }

  void launch(std::int64_t call, const RunRequest& request, cuda::StageClock* clock = nullptr) {
    if (tokens_ == 0) return;
    const auto mark = [clock](const char* stage) {
      if (clock != nullptr) clock->mark(stage);
    };
    const std::size_t slot = request.slot_of(call, slots_.size());
    const WeightSet& weights = resident_->weights[request.set_of(call, resident_->weights.size())];
    moe::LayerArgs args = buffers_.bind(slots_[slot], weights);
    moe::LibraryArgs around = buffers_.gemm_args();
    prepare(args);
    const RowCounts& rows = request.launch == Launch::graph ? slot_rows_[slot] : read_back_rows();
    mark("prepare");
    const auto all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    void* pointers[] = {&args, &around};
    const auto a_block_each = [&](Stage stage, std::int64_t count) {
      program_.kernel(stage).launch(
          stream(), {.grid = {static_cast<unsigned>(count), 1, 1}, .block = moe::kAroundThreads},
          pointers);
    };
    if (all > 0) {
      const CUdeviceptr x_scale = regroup(args.x_scale, args, layer().hidden_size);
      multiply(
          Role::w13, gemm1_, rows, weights.w13,
          {.rows = address(args.x_rows), .out = address(around.gate_up), .row_scale = x_scale});
      mark("gemm1");
      a_block_each(Stage::activation, all);
      if (program_.has(Stage::quantise)) a_block_each(Stage::quantise, all);
      const CUdeviceptr h_scale = regroup(around.h_scale, args, layer().intermediate_size);
      mark("activation");
      const bool codes = scheme().element_bytes == 1;
      multiply(Role::w2, gemm2_, rows, weights.w2,
               {.rows = codes ? address(around.h_codes) : address(around.h),
                .out = address(around.down),
                .row_scale = h_scale});
      mark("gemm2");
    }
    a_block_each(Stage::reduce, tokens_);
    mark("reduce");
  }

  void prepare(const moe::LayerArgs& args) const {
    if (program_.has(Stage::amax)) buffers_.amax().fill(stream(), 0);
    cuda::launch_prepare({.count = &program_.kernel(Stage::count),
                          .prepare = &program_.kernel(Stage::prepare),
                          .amax = program_.kernel_or_none(Stage::amax),
                          .overlapping = false},
                         args, resident_->gpu, stream());
  }

  // As an engine learns them that launches a GEMM for each expert: the host waits.
  const RowCounts& read_back_rows() {
    read_back_.resize(static_cast<std::size_t>(layer().local_experts()));
    buffers_.expert_rows().download(stream(), std::as_writable_bytes(std::span(read_back_)));
    stream().synchronize();
    return read_back_;
  }

  template <typename T>
  static CUdeviceptr address(const T* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
  }

  // Scales of rows where the library looks for them.
  CUdeviceptr regroup(const float* scales, const moe::LayerArgs& args, std::int64_t columns) const {
    if (!program_.has(Stage::regroup)) return address(scales);
    const std::int64_t units = scheme().scaling == Scaling::blocks ? (columns + 127) / 128 : 1;
    moe::RegroupArgs regroup = {.from = scales,
                                .to = nullptr,
                                .expert_rows = args.expert_rows,
                                .units = static_cast<int>(units),
                                .row_pitch = args.row_pitch};
    const CUdeviceptr to = buffers_.regrouped().get();
    regroup.to = reinterpret_cast<float*>(to);  // NOLINT(performance-no-int-to-ptr): of the device
    void* pointers[] = {&regroup};
    program_.kernel(Stage::regroup)
        .launch(stream(),
                {.grid = {static_cast<unsigned>(layer().local_experts()),
                          static_cast<unsigned>(std::min<std::int64_t>(units, 16)), 1},
                 .block = moe::kAroundThreads},
                pointers);
    return to;
  }

  // `first`: of the first expert; row_scale likewise, or the one of all rows.
  void multiply(Role role, Matmul& gemm, const RowCounts& counts, const MatrixBuffers& weights,
                const MatmulOperands& first) {
    const MatrixShape shape = weight_shape(layer(), role);
    const auto experts = static_cast<std::uint64_t>(layer().local_experts());
    const bool wide = role == Role::w13 && keeps_wide_sums(layer());
    const auto row_bytes = static_cast<std::uint64_t>(shape.cols * scheme().element_bytes);
    const auto out_bytes = static_cast<std::uint64_t>(shape.rows * (wide ? 4 : 2));
    const bool blocks = scheme().scaling == Scaling::blocks;
    const std::uint64_t scale_bytes =
        blocks ? static_cast<std::uint64_t>(shape.cols + 127) / 128 * 4 : 4;
    std::uint64_t row = 0, scale_row = 0;
    for (std::uint64_t e = 0; e < experts; ++e) {
      const std::int64_t rows = counts[e], four = rounded_to_four(rows);
      if (rows == 0) continue;
      MatmulOperands operands = {
          .weights = weights.values.get() + e * (weights.values.bytes() / experts),
          .rows = first.rows + row * row_bytes,
          .out = first.out + row * out_bytes,
          .weight_scale = weights.scales.get() + e * (weights.scales.bytes() / experts),
          .row_scale = first.row_scale};
      if (program_.has(Stage::regroup)) operands.row_scale += scale_row * scale_bytes;
      if (scheme().integer_bits != 0) operands.weights = dequantise(shape, weights, e);
      // What is past the expert's rows lands on the next one's, which are written after it.
      gemm.run(stream(), blocks ? four : rows, operands, buffers_.workspace());
      row += static_cast<std::uint64_t>(rows);
      scale_row += static_cast<std::uint64_t>(four);
    }
  }

  CUdeviceptr dequantise(const MatrixShape& shape, const MatrixBuffers& weights,
                         std::uint64_t expert) const {
    const OperandTraits traits = resident_->problem.scheme->traits().weight;
    const auto experts = static_cast<std::uint64_t>(layer().local_experts());
    const auto part = [&](const Buffer& buffer) {
      return buffer.get() == 0 ? 0 : buffer.get() + expert * (buffer.bytes() / experts);
    };
    const auto as = [&]<typename T>(T*& to, CUdeviceptr from) {
      to = reinterpret_cast<T*>(from);  // NOLINT(performance-no-int-to-ptr): of the device
    };
    moe::IntegerArgs args = {};
    as(args.codes, part(weights.values));
    as(args.scales, part(weights.scales));
    as(args.zero_points, part(weights.zero_points));
    as(args.group_index, part(weights.group_index));
    as(args.out, buffers_.dequantised().get());
    args.rows = static_cast<int>(shape.rows);
    args.columns = static_cast<int>(shape.cols);
    args.group = static_cast<int>(traits.unit.cols);
    args.scales_of_row = static_cast<int>(scales_of_row(traits, shape));
    args.bits = scheme().integer_bits;
    void* pointers[] = {&args};
    const std::int64_t threads = shape.rows * (shape.cols / 8);
    const auto blocks =
        static_cast<unsigned>((threads + moe::kAroundThreads - 1) / moe::kAroundThreads);
    program_.kernel(Stage::dequantise)
        .launch(stream(), {.grid = {blocks, 1, 1}, .block = moe::kAroundThreads}, pointers);
    return buffers_.dequantised().get();
  }

  std::shared_ptr<const Resident> resident_;
  std::int64_t tokens_;
  Program program_;
  LayerBuffers buffers_;
  Matmul gemm1_, gemm2_;
  KernelIdentity identity_;
  std::vector<Slot> slots_;
  std::vector<RowCounts> slot_rows_;  // rows of each expert, of the inputs that each slot holds
  RowCounts read_back_;
  cuda::Calls calls_;
};

class LibraryLayer final : public LoadedLayer {
 public:
  explicit LibraryLayer(std::shared_ptr<const Resident> resident)
      : resident_(std::move(resident)) {}

  std::int64_t weight_bytes() const override {
    return weight_set_bytes(resident_->problem, resident_->scheme);
  }
  int weight_sets() const override { return static_cast<int>(resident_->weights.size()); }

  Expected<std::unique_ptr<Plan>, Fault> plan(std::int64_t tokens, const Config&,
                                              int slots) override {
    std::unique_ptr<Plan> made;
    auto fault = guarded([&] {
      resident_->gpu.make_current();
      made = std::make_unique<LibraryPlan>(resident_, tokens, slots);
    });
    if (fault) return Unexpected{std::move(*fault)};
    return made;
  }

 private:
  std::shared_ptr<const Resident> resident_;
};

}  // namespace

Numerics numerics_of(const Layer& layer, const LibraryScheme& scheme) {
  return {.gemm1_out = keeps_wide_sums(layer) ? Precision::fp32 : Precision::activation_dtype,
          .act_out = Precision::activation_dtype,
          .pair_out = Precision::fp32,
          .accumulate = scheme.element_bytes == 1 ? Accumulate::reduced : Accumulate::fp32,
          .weights = scheme.integer_bits != 0 ? Precision::activation_dtype : Precision::fp32,
          .gemm2_out = Precision::activation_dtype};
}

std::vector<std::int32_t> count_rows(const Layer& layer, std::span<const std::int32_t> topk_ids) {
  RowCounts rows(static_cast<std::size_t>(layer.local_experts()));
  for (const std::int32_t id : topk_ids) {
    if (const std::int32_t local = layer.local_id(id); local >= 0) {
      ++rows[static_cast<std::size_t>(local)];
    }
  }
  return rows;
}

std::unique_ptr<LoadedLayer> load_layer(const cuda::Gpu& gpu, const Problem& problem,
                                        const LibraryScheme& scheme, const ExpertSource& experts,
                                        int sets) {
  auto resident = std::make_shared<Resident>(gpu, problem, scheme);
  resident->weights = upload_weights(problem, scheme, experts, sets, resident->stream);
  return std::make_unique<LibraryLayer>(std::move(resident));
}

}  // namespace moegauge::cublaslt
