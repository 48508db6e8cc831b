// align by counting: every thread counts the experts of its stretch of pairs, a scan over experts
// and stretches gives each stretch its places, and every thread puts its pairs there. Pairs of an
// expert stand in rising order, whatever the number of threads.
#include <algorithm>
#include <vector>

#include "kernels/cpu/ops/cpu_op.h"

namespace moegauge::cpu {
namespace {

class AlignKernel final : public OpKernel {
 public:
  AlignKernel(const OpProblem& p, ThreadPool& pool)
      : pool_(pool),
        experts_(static_cast<std::size_t>(p.layer.experts)),
        block_(p.number("block_size")),
        skips_(p.word("remote_experts") == "skipped"),
        pairs_(p.tokens * p.layer.top_k),
        parts_(pairs_ <= kAlone ? 1 : pool.threads()),
        next_(experts_ * static_cast<std::size_t>(parts_)) {}

  std::optional<std::string> wrong(std::span<const Tensor> inputs) const override {
    for (const Tensor& ids : inputs) {
      for (const std::int32_t id : ids.as<std::int32_t>()) {
        if (id >= -1 && id < static_cast<std::int64_t>(experts_)) continue;
        return ids.spec.name + " holds the id " + std::to_string(id) + "; -1 to " +
               std::to_string(experts_ - 1) + " are served";
      }
    }
    return std::nullopt;
  }

  void run(int, std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    const std::int32_t* ids = inputs[0].as<std::int32_t>().data();
    const std::int32_t* map = inputs.size() > 1 ? inputs[1].as<std::int32_t>().data() : nullptr;
    const auto sorted = outputs[0].as<std::int32_t>();
    over_parts([&](std::int64_t part) { count(ids, part); });
    const std::int64_t end = place(map, sorted, outputs[1].as<std::int32_t>());
    outputs[2].as<std::int32_t>()[0] = static_cast<std::int32_t>(end);
    over_parts([&](std::int64_t part) {
      scatter(ids, part, sorted.data());
      const std::int64_t rest = std::ssize(sorted) - end;
      std::fill(sorted.begin() + end + rest * part / parts_,
                sorted.begin() + end + rest * (part + 1) / parts_,
                static_cast<std::int32_t>(pairs_));
    });
  }

 private:
  static constexpr std::int64_t kAlone = 16384;  // pairs
  static constexpr std::int32_t kNowhere = -1;

  std::int32_t* next(std::int64_t part) {
    return next_.data() + static_cast<std::size_t>(part) * experts_;
  }
  std::int64_t first(std::int64_t part) const { return pairs_ * part / parts_; }

  template <typename Fn>
  void over_parts(const Fn& fn) {
    if (parts_ == 1) return fn(std::int64_t{0});
    pool_.parallel_for(parts_, fn, Schedule::contiguous);
  }

  void count(const std::int32_t* ids, std::int64_t part) {
    std::int32_t* const counts = next(part);
    std::fill(counts, counts + experts_, 0);
    for (std::int64_t i = first(part); i < first(part + 1); ++i) {
      if (ids[i] >= 0) ++counts[ids[i]];
    }
  }

  // Turns counts into first places, writes what stands between pairs, returns the end of the
  // last block.
  std::int64_t place(const std::int32_t* map, std::span<std::int32_t> sorted,
                     std::span<std::int32_t> block_experts) {
    std::int64_t at = 0, block = 0;
    for (std::size_t e = 0; e < experts_; ++e) {
      const std::int32_t local = map != nullptr ? map[e] : static_cast<std::int32_t>(e);
      const bool skipped = skips_ && local < 0;
      const std::int64_t begin = at;
      for (std::int64_t part = 0; part < parts_; ++part) {
        std::int32_t& entry = next(part)[e];
        const std::int32_t rows = entry;
        entry = skipped ? kNowhere : static_cast<std::int32_t>(at);
        at += skipped ? 0 : rows;
      }
      const std::int64_t end = begin + (at - begin + block_ - 1) / block_ * block_;
      std::fill(sorted.begin() + at, sorted.begin() + end, static_cast<std::int32_t>(pairs_));
      for (at = end; block < end / block_; ++block) {
        block_experts[static_cast<std::size_t>(block)] = local;
      }
    }
    std::fill(block_experts.begin() + block, block_experts.end(), -1);
    return at;
  }

  void scatter(const std::int32_t* ids, std::int64_t part, std::int32_t* sorted) {
    std::int32_t* const places = next(part);
    for (std::int64_t i = first(part); i < first(part + 1); ++i) {
      if (ids[i] < 0 || places[ids[i]] == kNowhere) continue;
      sorted[places[ids[i]]++] = static_cast<std::int32_t>(i);
    }
  }

  ThreadPool& pool_;
  const std::size_t experts_;
  const std::int64_t block_;
  const bool skips_;
  const std::int64_t pairs_, parts_;
  std::vector<std::int32_t> next_;  // [parts][experts]: counts, then where the next pair goes
};

class AlignOp final : public CpuOp {
 public:
  std::string_view name() const override { return "align"; }
  std::unique_ptr<OpKernel> make(const OpProblem& problem, const Config&, const OpContext& context,
                                 const OpWeights*) const override {
    return std::make_unique<AlignKernel>(problem, *context.pool);
  }
};

}  // namespace

const CpuOp& align_op() {
  static const AlignOp op;
  return op;
}

}  // namespace moegauge::cpu
