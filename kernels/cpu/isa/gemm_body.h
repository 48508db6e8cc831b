// The grouped GEMM of one level, on one tile of weights. Included once per level inside its unnamed
// namespace, after vec.h and the level's own dot instruction and weight decoders.
//
// Weights are decoded once into a panel in the first-level cache, over which all rows then go
// (gemm_by_panels). Levels with 32 wide registers decode them in registers on their way into the
// dots instead where there are too few rows to pay for a panel (gemm_fused). Either way one output
// is one chain of sums in the order of the contracted dimension, whatever the number of rows, and
// the next block of weights is fetched meanwhile.

constexpr int kHalf = 2;  // vectors decoded at a time
// A panel holds kPanelVectors of a tile's vectors. Its dots work on kPanelRegisters of them and at
// most kPanelRows rows: as square as the registers allow, because each step loads one value per
// register and one per row, and loads, not dots, are what a flat one waits for.
constexpr bool kWide = MOEGAUGE_LANES == 16;
constexpr int kPanelVectors = kWide ? 4 : 2;
constexpr int kPanelRegisters = kWide ? 4 : 2;
constexpr int kPanelRows = 6;

// Fetches a stretch of memory bit by bit between other work.
struct Prefetcher {
  const std::byte* next = nullptr;
  int lines_per_call = 0;
  MOEGAUGE_INLINE void operator()() {
    for (int i = 0; i < lines_per_call; ++i, next += 64) __builtin_prefetch(next, 0, 2);
  }
};

MOEGAUGE_INLINE F load_scales(ScaleType type, const std::byte* values, std::int64_t i) {
  if (type == ScaleType::fp32) return load_as<F>(values + 4 * i);
  const U bits = __builtin_convertvector(load_as<H>(values + 2 * i), U);
  return type == ScaleType::bf16 ? float_of(bits << 16) : fp16_value(bits);
}
MOEGAUGE_INLINE float load_scale(ScaleType type, const std::byte* values, std::int64_t i) {
  if (type == ScaleType::fp32) return load_as<float>(values + 4 * i);
  const U bits = splat_bits(load_as<std::uint16_t>(values + 2 * i));
  return (type == ScaleType::bf16 ? float_of(bits << 16) : fp16_value(bits))[0];
}

struct BlockScales {
  const float* a = nullptr;  // of this block's first row
  const float* a_sum = nullptr;
  const std::byte* w = nullptr;  // of this group
  const std::byte* w_zero = nullptr;
  ScaleType type = ScaleType::fp32;
  int lanes = 1;
  MOEGAUGE_INLINE F of_columns(const std::byte* values, std::int64_t column) const {
    if (lanes == 1) return splat(load_scale(type, values, column / kVector));
    return load_scales(type, values, column);
  }
  MOEGAUGE_INLINE F weights(std::int64_t column) const { return of_columns(w, column); }
  MOEGAUGE_INLINE F zeros(std::int64_t column) const {
    return w_zero ? of_columns(w_zero, column) : F{};
  }
  // sum over k of a * (code - zero) * scale, from the sum over k of a * code.
  // kActivations: they have scales.
  template <bool kActivations>
  MOEGAUGE_INLINE F scaled(F sum, int r, F zero, F weight) const {
    if (w_zero) sum = sum - splat(a_sum[r]) * zero;
    if constexpr (kActivations) sum = sum * splat(a[r]);
    return sum * weight;
  }
};

MOEGAUGE_INLINE BlockScales block_scales(const GemmArgs& g, std::int64_t element,
                                         std::int64_t row) {
  const std::int64_t group = g.group > 0 ? element / g.group : 0;
  const std::int64_t of_rows = group * g.rows + row;
  const std::int64_t of_columns = group * g.vectors * g.scale_lanes * scale_bytes(g.scale_type);
  return {.a = g.a_scale ? g.a_scale + of_rows : nullptr,
          .a_sum = g.a_sum ? g.a_sum + of_rows : nullptr,
          .w = g.w_scale + of_columns,
          .w_zero = g.w_zero ? g.w_zero + of_columns : nullptr,
          .type = g.scale_type,
          .lanes = g.scale_lanes};
}

// Sums in registers: loaded from c and stored to it, or scaled and added to it. `column` is that of
// the first register within the tile.
template <int MR, int NV>
struct Accumulators {
  F v[MR][NV];

  MOEGAUGE_INLINE void zero() {
#pragma GCC unroll 12
    for (int r = 0; r < MR; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < NV; ++i) v[r][i] = F{};
  }
  MOEGAUGE_INLINE void load_from(const float* c, std::int64_t ld) {
#pragma GCC unroll 12
    for (int r = 0; r < MR; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < NV; ++i) v[r][i] = load(c + r * ld + i * L);
  }
  MOEGAUGE_INLINE void store_to(float* c, std::int64_t ld) const {
#pragma GCC unroll 12
    for (int r = 0; r < MR; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < NV; ++i) store(c + r * ld + i * L, v[r][i]);
  }
  template <bool kActivations>
  MOEGAUGE_INLINE void add_scaled(float* c, std::int64_t ld, bool first, const BlockScales& scales,
                                  std::int64_t column) const {
#pragma GCC unroll 4
    for (int i = 0; i < NV; ++i) {
      const F weight = scales.weights(column + i * L);
      const F zero = scales.zeros(column + i * L);
#pragma GCC unroll 12
      for (int r = 0; r < MR; ++r) {
        const F scaled = scales.template scaled<kActivations>(v[r][i], r, zero, weight);
        float* out = c + r * ld + i * L;
        store(out, first ? scaled : load(out) + scaled);
      }
    }
  }
};

MOEGAUGE_INLINE bool scales_within_blocks(const GemmArgs& g) { return g.w_scale && g.group > 0; }

// Runs `body(accumulators, first element, elements)` over elements [begin, begin + count) with the
// sums taken from and put to c: at once, or per scale group.
template <int MR, int NV, typename Body>
MOEGAUGE_INLINE void accumulate(const GemmArgs& g, std::int64_t row, std::int64_t column,
                                std::int64_t begin, std::int64_t count, const Body& body) {
  const std::int64_t ld = g.vectors * kVector;
  float* c = g.c + row * ld + column;
  Accumulators<MR, NV> acc;
  if (!scales_within_blocks(g)) {
    if (begin == 0) {
      acc.zero();
    } else {
      acc.load_from(c, ld);
    }
    body(acc, begin, count);
    acc.store_to(c, ld);
    return;
  }
  for (std::int64_t k = begin; k < begin + count; k += g.group) {
    const std::int64_t rest = begin + count - k;
    acc.zero();
    body(acc, k, rest < g.group ? rest : g.group);
    if (g.a_scale) {
      acc.template add_scaled<true>(c, ld, k == 0, block_scales(g, k, row), column);
    } else {
      acc.template add_scaled<false>(c, ld, k == 0, block_scales(g, k, row), column);
    }
  }
}

// A decoded part of a tile and the rows that go over it.
struct PanelPart {
  std::int64_t begin, count;  // elements
  int vector;                 // the part's first
  int vectors;
};

// Rows packed `line` floats apart per 16 steps, over registers that lie `step` floats apart.
template <DotUnit kUnit, int MR, int NV>
MOEGAUGE_INLINE void dot_panel(const float* a, std::int64_t line, const float* w, std::int64_t step,
                               std::int64_t lines, Prefetcher& prefetch,
                               Accumulators<MR, NV>& acc) {
  for (std::int64_t i = 0; i < lines; ++i, a += line) {
    prefetch();
#pragma GCC unroll 4
    for (int s = 0; s < 16; ++s, w += step) {
      F wv[NV];
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) wv[v] = load(w + v * L);
#pragma GCC unroll 12
      for (int r = 0; r < MR; ++r) {
        const F x = splat(a[r * 16 + s]);
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) acc.v[r][v] = dot<kUnit>(x, wv[v], acc.v[r][v]);
      }
    }
  }
}

template <DotUnit kUnit, int MR, int NV>
void panel_rows(const GemmArgs& g, const PanelPart& part, std::int64_t row, std::int64_t block_row,
                std::int64_t block_rows, Prefetcher& prefetch) {
  constexpr int kStep = elements_per_step(kUnit);
  const float* const a = g.a + row * (g.elements / kStep);
  const std::int64_t width = part.vectors * kVector;
  for (std::int64_t j = 0; j < width; j += NV * L) {
    accumulate<MR, NV>(g, row + block_row, part.vector * kVector + j, part.begin, part.count,
                       [&](Accumulators<MR, NV>& acc, std::int64_t k, std::int64_t length) {
                         dot_panel<kUnit>(a + k / kStep * block_rows + block_row * 16,
                                          block_rows * 16,
                                          g.panel + (k - part.begin) / kStep * width + j, width,
                                          length / kStep / 16, prefetch, acc);
                       });
  }
}

// Calls fn with `rows` in [1, kMost] as a compile-time constant.
template <int kMost, typename Fn>
MOEGAUGE_INLINE void with_rows(std::int64_t rows, const Fn& fn) {
  if constexpr (kMost > 1) {
    if (rows < kMost) return with_rows<kMost - 1>(rows, fn);
  }
  fn(Constant<kMost>());
}

template <DotUnit kUnit, int NV>
void panel_all_rows(const GemmArgs& g, const PanelPart& part, Prefetcher& prefetch) {
  const RowBlocks blocks(g.rows);
  std::int64_t row = 0;
  for (std::int64_t b = 0; b < blocks.count; ++b) {
    const std::int64_t rows = blocks.size(b);
    // As few and as even parts as the registers allow.
    const std::int64_t parts = (rows + kPanelRows - 1) / kPanelRows;
    const std::int64_t most = (rows + parts - 1) / parts;
    for (std::int64_t at = 0; at < rows; at += most) {
      with_rows<kPanelRows>(rows - at < most ? rows - at : most, [&](auto count) {
        panel_rows<kUnit, count.value, NV>(g, part, row, at, rows, prefetch);
      });
    }
    row += rows;
  }
}

// Marks of a tile from an element on; nullptr where no code of the codec is rare.
template <WeightCodec kCodec>
MOEGAUGE_INLINE const std::uint8_t* rare_marks(const GemmArgs& g, std::int64_t element) {
  return has_rare_codes<kCodec> ? g.w_rare + element / kRareElements : nullptr;
}
constexpr unsigned vector_bits(int first, int count) { return ((1u << count) - 1u) << first; }

// The lines of the part after this one, spread over the dots of this one.
MOEGAUGE_INLINE Prefetcher next_part(const GemmArgs& g, const std::byte* next, std::int64_t bytes,
                                     std::int64_t dot_lines) {
  if (g.prefetch == 0) return {};
  const std::int64_t lines = bytes / 64;
  return {next, static_cast<int>((lines + dot_lines - 1) / dot_lines)};
}

template <WeightCodec kCodec, DotUnit kUnit, int kVectors>
void gemm_part(const GemmArgs& g, const PanelPart& part, const std::byte* w, const std::byte* next,
               std::int64_t bytes) {
  constexpr int kStep = elements_per_step(kUnit);
  constexpr int NV = kVectors < kPanelRegisters ? kVectors : kPanelRegisters;
  decode_panel<kCodec, kUnit, kVectors>(w, g.vectors * 64, part.count,
                                        rare_marks<kCodec>(g, part.begin),
                                        vector_bits(part.vector, kVectors), g.panel);
  const std::int64_t passes =
      (g.rows + kPanelRows - 1) / kPanelRows * kVectors * kVector / (NV * L);
  Prefetcher prefetch = next_part(g, next, bytes, passes * (part.count / kStep / 16));
  panel_all_rows<kUnit, NV>(g, part, prefetch);
}

template <WeightCodec kCodec, DotUnit kUnit>
void gemm_by_panels(const GemmArgs& g) {
  const std::int64_t vector_bytes = 64 / run_length<kCodec>;  // of one element
  for (std::int64_t begin = 0; begin < g.elements; begin += g.block) {
    const std::int64_t rest = g.elements - begin;
    const std::int64_t count = rest < g.block ? rest : g.block;
    const std::byte* const w = g.w + begin * vector_bytes * g.vectors;
    const std::byte* next = w + count * vector_bytes * g.vectors;
    for (int v = 0; v < g.vectors; v += kPanelVectors) {
      const int vectors = g.vectors - v < kPanelVectors ? g.vectors - v : kPanelVectors;
      const PanelPart part = {begin, count, v, vectors};
      const std::int64_t bytes = count * vector_bytes * vectors;
      if (vectors == kHalf) {
        gemm_part<kCodec, kUnit, kHalf>(g, part, w + v * 64, next, bytes);
      } else {
        gemm_part<kCodec, kUnit, kPanelVectors>(g, part, w + v * 64, next, bytes);
      }
      next += bytes;
    }
  }
}

// ---- weights decoded in registers: only where a hardware vector is a whole column vector ------

// A block of a tile's weights as it lies in memory, and what to fetch meanwhile.
struct WeightBlock {
  const std::byte* w = nullptr;
  std::int64_t begin = 0, count = 0;  // elements
  const std::byte* ahead = nullptr;
  std::int64_t ahead_step = 0;  // bytes per 64 bytes of w
};

// One line of activations of MR rows times the weights of NV vectors.
template <WeightCodec kCodec, DotUnit kUnit, bool kRare, int MR, int NV>
MOEGAUGE_INLINE void fused_line(const float* a, const std::byte* w, std::int64_t run_bytes,
                                WeightBlock& block, Accumulators<MR, NV>& acc) {
  constexpr int kSteps = part_steps<kCodec, kUnit>;                 // decoded at a time
  constexpr int kParts = run_length<kCodec> / part_length<kCodec>;  // of a run
  for (int run = 0; run < 16 / (kSteps * kParts); ++run, w += run_bytes) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 2
      for (int v = 0; v < NV; v += kHalf) {
        F step[kHalf][kSteps];
        for (int i = 0; i < kHalf; ++i) {
          if (part == 0) {
            // Far ahead into the second-level cache, near into the first.
            __builtin_prefetch(block.ahead, 0, 2);
            __builtin_prefetch(w + (v + i) * 64 + 512, 0, 3);
            block.ahead += block.ahead_step;
          }
          decode_run<kCodec, kUnit, kRare>(w + (v + i) * 64, 0, part, step[i]);
        }
        // Broadcast anew for each half: keeping the values would cost the registers that the sums
        // need.
        const float* x = a + (run * kParts + part) * kSteps;
        MOEGAUGE_FORGET(x);
#pragma GCC unroll 4
        for (int s = 0; s < kSteps; ++s) {
#pragma GCC unroll 12
          for (int r = 0; r < MR; ++r) {
            const F xv = splat(x[r * 16 + s]);
            for (int i = 0; i < kHalf; ++i) {
              acc.v[r][v + i] = dot<kUnit>(xv, step[i][s], acc.v[r][v + i]);
            }
          }
        }
      }
    }
  }
}

// Whether one of `elements` elements under `marks` is rare.
template <int kElements>
MOEGAUGE_INLINE bool any_rare(const std::uint8_t* marks, unsigned vectors) {
  unsigned any = 0;
  for (int i = 0; i < kElements / kRareElements; ++i) any |= marks[i];
  return (any & vectors) != 0;
}

// Rows [row, row + MR), NV vectors of the tile at a time.
template <WeightCodec kCodec, DotUnit kUnit, int MR, int NV>
void fused_rows(const GemmArgs& g, WeightBlock block, std::int64_t row) {
  constexpr int kLine = 16 * elements_per_step(kUnit);  // elements of a line of activations
  const std::int64_t run_bytes = g.vectors * 64;
  const std::int64_t line_bytes = run_bytes * (kLine / run_length<kCodec>);
  const float* const rows = g.a + row * (g.elements / elements_per_step(kUnit));
  for (int v0 = 0; v0 < g.vectors; v0 += NV) {
    const auto body = [&](Accumulators<MR, NV>& acc, std::int64_t k, std::int64_t length) {
      const float* a = rows + k / elements_per_step(kUnit) * MR;
      const std::byte* w = block.w + (k - block.begin) / kLine * line_bytes + v0 * 64;
      const std::uint8_t* const marks = rare_marks<kCodec>(g, k);
      for (std::int64_t at = 0; at < length; at += kLine, a += MR * 16, w += line_bytes) {
#pragma GCC unroll 12
        for (int r = 0; r < MR; ++r) __builtin_prefetch(a + (MR + r) * 16, 0, 3);
        if (has_rare_codes<kCodec> &&
            any_rare<kLine>(marks + at / kRareElements, vector_bits(v0, NV))) {
          fused_line<kCodec, kUnit, true>(a, w, run_bytes, block, acc);
        } else {
          fused_line<kCodec, kUnit, false>(a, w, run_bytes, block, acc);
        }
      }
    };
    accumulate<MR, NV>(g, row, v0 * kVector, block.begin, block.count, body);
  }
}

template <WeightCodec kCodec, DotUnit kUnit>
void fused_row_block(const GemmArgs& g, const WeightBlock& block, std::int64_t row,
                     std::int64_t rows) {
  // Few rows leave registers for a whole tile, which then is one stream of memory.
  constexpr int kMost = fused_most<kCodec>;
  constexpr int kWhole = element_bits(kCodec) < 16 ? 5 : 6;
  if (g.vectors == kMaxTileVectors && rows <= kWhole) {
    with_rows<kWhole>(
        rows, [&](auto n) { fused_rows<kCodec, kUnit, n.value, kMaxTileVectors>(g, block, row); });
  } else {
    with_rows<kMost>(rows,
                     [&](auto n) { fused_rows<kCodec, kUnit, n.value, kHalf>(g, block, row); });
  }
}

// `bytes` of weights in memory follow in the next block; each block of rows fetches its share.
template <WeightCodec kCodec, DotUnit kUnit>
void fused_all_rows(const GemmArgs& g, WeightBlock block, const std::byte* next,
                    std::int64_t bytes) {
  const RowBlocks blocks(g.rows);
  const std::int64_t lines = block.count / run_length<kCodec> * g.vectors * blocks.count;
  block.ahead_step = g.prefetch > 0 ? (bytes + lines - 1) / lines : 0;
  std::int64_t row = 0;
  for (std::int64_t b = 0; b < blocks.count; ++b) {
    block.ahead = g.prefetch > 0 ? next + b * bytes / blocks.count : block.w;
    fused_row_block<kCodec, kUnit>(g, block, row, blocks.size(b));
    row += blocks.size(b);
  }
}

template <WeightCodec kCodec, DotUnit kUnit>
void gemm_fused(const GemmArgs& g) {
  const std::int64_t element_bytes = 64 / run_length<kCodec> * g.vectors;  // of the whole tile
  for (std::int64_t begin = 0; begin < g.elements; begin += g.block) {
    const std::int64_t rest = g.elements - begin;
    const std::int64_t count = rest < g.block ? rest : g.block;
    const std::int64_t bytes = count * element_bytes;
    const WeightBlock block = {.w = g.w + begin * element_bytes, .begin = begin, .count = count};
    fused_all_rows<kCodec, kUnit>(g, block, block.w + g.prefetch, bytes);
  }
}

// One scale for the whole contracted dimension: applied once, at the end.
MOEGAUGE_INLINE void scale_outputs(const GemmArgs& g) {
  const std::int64_t ld = g.vectors * kVector;
  for (std::int64_t r = 0; r < g.rows; ++r) {
    const BlockScales scales = block_scales(g, 0, r);
    for (std::int64_t j = 0; j < ld; j += L) {
      float* c = g.c + r * ld + j;
      const F zero = scales.zeros(j), weight = scales.weights(j);
      store(c, g.a_scale ? scales.scaled<true>(load(c), 0, zero, weight)
                         : scales.scaled<false>(load(c), 0, zero, weight));
    }
  }
}

template <WeightCodec kCodec, DotUnit kUnit>
void gemm_as(const GemmArgs& g) {
  if (g.rows > fused_limit<kCodec, kUnit>) {
    gemm_by_panels<kCodec, kUnit>(g);
  } else if constexpr (fused_most<kCodec> > 0) {
    gemm_fused<kCodec, kUnit>(g);
  }
  if (g.w_scale && g.group == 0) scale_outputs(g);
}

void pack_rows(const float* const* rows, std::int64_t count, std::int64_t steps, float* out) {
  const RowBlocks blocks(count);
  for (std::int64_t b = 0; b < blocks.count; ++b) {
    const int size = blocks.size(b);
    for (std::int64_t s = 0; s < steps; s += 16) {
      for (int r = 0; r < size; ++r, out += 16) __builtin_memcpy(out, rows[r] + s, 64);
    }
    rows += size;
  }
}
