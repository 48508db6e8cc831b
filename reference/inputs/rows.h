// Rows of one generated tensor (x, w13 or w2), each made without the others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "reference/inputs.h"
#include "reference/random/stream.h"

namespace moegauge {

// A row as it is asked for: of which tensor (global expert, or stream of draws), and where.
struct RowId {
  std::uint64_t tensor = 0;
  std::int64_t row = 0;  // keys the values: gate rows, then up rows, whatever their order in memory
  std::int64_t stored = 0;  // row in memory, which decides the scale unit
};

class Rows {
 public:
  virtual ~Rows() = default;
  virtual void fill(const RowId& id, std::span<float> out) const = 0;
  // The largest magnitude that rows can hold, for calibrating static scales.
  virtual double largest() const = 0;
};

// Length of a unit or of the whole where it is 0.
constexpr std::int64_t unit_or_whole(std::int64_t unit, std::int64_t whole) {
  return unit > 0 ? unit : whole;
}

struct RowsSpec {
  Dtype dtype = Dtype::bf16;
  double deviation = 1;
  std::int64_t rows = 0, cols = 0;
  OperandTraits operand = {};
  std::uint64_t seed = 0;
  Purpose values = Purpose::x;
  Purpose structure = Purpose::x_structure;
};

// Of x: each token is a row of its own.
RowsSpec x_spec(const Layer& layer, const SchemeTraits& traits, std::uint64_t seed);

// Throws InputError where the layer has no elements to fill.
void require_sizes(const Layer& layer);

// Every distribution but `exact`.
std::unique_ptr<Rows> random_rows(Distribution distribution, const RowsSpec& spec);

}  // namespace moegauge
