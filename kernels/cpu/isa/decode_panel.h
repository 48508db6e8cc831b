// Weights decoded into a panel. Included inside each level's unnamed namespace after its decoders.

// Elements under one mark, of kVectors vectors side by side, runs `stride` bytes apart -> panel
// [steps][kVectors * 16].
template <WeightCodec kCodec, DotUnit kUnit, bool kRare, int kVectors>
MOEGAUGE_INLINE void decode_marked(const std::byte* w, std::int64_t stride, float* panel) {
  constexpr int kSteps = part_steps<kCodec, kUnit>;
  constexpr int kWidth = kVectors * kVector;
  for (int k = 0; k < kRareElements; k += run_length<kCodec>, w += stride) {
#pragma GCC unroll 2
    for (int part = 0; part < run_length<kCodec> / part_length<kCodec>; ++part) {
#pragma GCC unroll 8
      for (int column = 0; column < kWidth; column += L) {
        F steps[kSteps];
        // The next part's lines are no nearer than the second-level cache.
        if (part == 0 && column % kVector == 0) {
          __builtin_prefetch(w + 512 + column / kVector * 64, 0, 3);
        }
        decode_run<kCodec, kUnit, kRare>(w + column / kVector * 64, column % kVector, part, steps);
#pragma GCC unroll 4
        for (int s = 0; s < kSteps; ++s) store(panel + s * kWidth + column, steps[s]);
      }
      panel += kSteps * kWidth;
    }
  }
}

// `count` elements. `rare`: their marks, where the level has rare codes of the codec; those of
// `vectors` count.
template <WeightCodec kCodec, DotUnit kUnit, int kVectors>
void decode_panel(const std::byte* w, std::int64_t stride, std::int64_t count,
                  const std::uint8_t* rare, unsigned vectors, float* panel) {
  constexpr int kRuns = kRareElements / run_length<kCodec>;
  for (std::int64_t k = 0; k < count; k += kRareElements, w += kRuns * stride) {
    if (has_rare_codes<kCodec> && (*rare++ & vectors) != 0) {
      decode_marked<kCodec, kUnit, true, kVectors>(w, stride, panel);
    } else {
      decode_marked<kCodec, kUnit, false, kVectors>(w, stride, panel);
    }
    panel += kRareElements / elements_per_step(kUnit) * kVectors * kVector;
  }
}
