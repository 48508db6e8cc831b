// This backend's side of a scheme: which device code serves it and how its scales lie. One file per
// scheme family defines a CudaScheme and is named once in the list of kernels/cuda/CMakeLists.txt.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/cuda/box_packing.h"
#include "kernels/cuda/int_packing.h"
#include "kernels/cuda/tile.h"
#include "kernels/nvidia/runtime/ceilings.h"
#include "reference/layer.h"
#include "reference/numerics.h"
#include "reference/schemes/scheme.h"

namespace moegauge::cuda {

// One scale for all activations of a GEMM, where a scheme has such.
enum class TensorScale : std::uint8_t { none, given, from_amax };

struct CudaScheme {
  // The enumerator of moe::Scheme (kernels/nvidia/device/config.cuh) that is compiled for.
  const char* enumerator;
  int element_bytes;  // of weights and of activations in the GEMMs
  // The first compute capability with the instructions: 90 for wgmma.
  int least_capability;
  bool (*serves)(const SchemeTraits& traits, const Layer& layer);
  // Where the kernels round; `promoted`: fp32 sums every 128 of K instead of in the tensor core.
  Numerics (*numerics)(const Layer& layer, bool promoted);
  bool may_promote, must_promote;
  WeightScales scales;  // of weights that are not integers
  // The activation function's output makes a round trip in bf16 before it is quantised, because its
  // scale depends on a whole row.
  bool wide_activations;
  // By growing rows; the last serves every larger number. From docs/performance/cuda-h200.md.
  std::span<const DefaultTile> defaults;
  // Weights of few bits, integers or E2M1: how they are packed when a layer is loaded. None: as
  // they are, see box_packing.h.
  std::optional<IntFormat> integers = {};
  TensorScale tensor_scale = TensorScale::none;
  bool integer_products = false;  // int8 on both sides
  // A family of several formats: the one for these traits.
  const CudaScheme* (*format)(const SchemeTraits& traits) = nullptr;

  // The instruction whose rate is the scheme's ceiling.
  DotKind dot_kind() const {
    return integer_products ? DotKind::int8 : element_bytes == 1 ? DotKind::e4m3 : DotKind::bf16;
  }
  bool block_scales() const { return scales == WeightScales::blocks; }
  bool microscaling() const { return scales == WeightScales::units; }
};

// Of kernels whose sums are fp32 (or exact) and which round h and the experts' outputs to the
// activation dtype.
Numerics fp32_numerics(const Layer& layer, bool promoted);

std::span<const CudaScheme* const> cuda_schemes();
// The first family that serves the scheme; null where none does.
const CudaScheme* find_scheme(const Scheme& scheme, const Layer& layer);

}  // namespace moegauge::cuda
