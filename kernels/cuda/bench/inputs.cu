// Random weights, activations and routing. Never zeros: they are faster than data.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/device/numeric.h"
#include "kernels/cuda/bench/bench.h"

namespace bench {
namespace {

__device__ uint64_t mix(uint64_t v) {
  v += 0x9e3779b97f4a7c15ull;
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
  return v ^ (v >> 31);
}
__device__ float gaussian(uint64_t seed, uint64_t index) {
  const uint64_t r = mix(seed * 0x2545f4914f6cdd1dull + index);
  const float u = (static_cast<uint32_t>(r) + 1.0f) * 2.3283064e-10f, a = static_cast<uint32_t>(r >> 32) * 2.3283064e-10f;
  return sqrtf(-2.0f * logf(fminf(u, 1.0f))) * cospif(2.0f * a);
}

// E4M3 codes spread as a block of 16384 gaussians scaled to the maximum would be.
__global__ void fill_e4m3(uint8_t* dst, size_t count, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    dst[i] = moe::encode_e4m3(gaussian(seed, i) * 112.0f);
}
__global__ void fill_bf16(uint16_t* dst, size_t count, uint64_t seed, float sigma) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    dst[i] = static_cast<uint16_t>(moe::pack_bf16(gaussian(seed, i) * sigma, 0.0f));
}
// Scales spread over 2^-1..2^1 around `centre`, so that a shifted scale shows.
__global__ void fill_scale(float* dst, size_t count, uint64_t seed, float centre) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    dst[i] = centre * exp2f(2.0f * (static_cast<uint32_t>(mix(seed + i * 77)) * 2.3283064e-10f) - 1.0f);
}

// -1, 0 or 1.
__device__ float sign_or_zero(uint64_t seed, uint64_t index) {
  const uint32_t r = static_cast<uint32_t>(mix(seed * 0x2545f4914f6cdd1dull + index) >> 40) & 3;
  return r == 0 ? -1.0f : r == 1 ? 1.0f : 0.0f;
}
__global__ void fill_exact_e4m3(uint8_t* dst, size_t count, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    dst[i] = moe::encode_e4m3(sign_or_zero(seed, i));
}
// Small integers; at every `period`-th column (0: none) the E4M3 maximum, so that a
// group's or a row's scale is 1.
__global__ void fill_exact_bf16(uint16_t* dst, size_t count, uint64_t seed, int columns, int period, float unit) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    float v = sign_or_zero(seed, i) + sign_or_zero(seed + 1, i);
    if (period > 0 && (i % columns) % period == 0) v = sign_or_zero(seed, i) < 0 ? -448.0f : 448.0f;
    dst[i] = static_cast<uint16_t>(moe::pack_bf16(v * unit, 0.0f));
  }
}
__global__ void fill_power(float* dst, size_t count, uint64_t seed, int exponent) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    dst[i] = exp2f(float(exponent + int(mix(seed + i * 77) & 1)));
}

}  // namespace

Weights make_weights(const Layer& l, uint64_t seed, bool exact) {
  Weights w;
  if (l.int_bits() != 0) {
    make_int_weights(w, l, seed, exact);
    return w;
  }
  const size_t n13 = size_t(l.experts_local) * 2 * l.inter * l.hidden, n2 = size_t(l.experts_local) * l.hidden * l.inter;
  CUDA_CHECK(cudaMalloc(&w.w13, n13 * l.element_bytes()));
  CUDA_CHECK(cudaMalloc(&w.w2, n2 * l.element_bytes()));
  const float sigma1 = 1.0f / std::sqrt(float(l.hidden)), sigma2 = 1.0f / std::sqrt(float(l.inter));
  if (!l.fp8() && exact) {
    fill_exact_bf16<<<1024, 256>>>(reinterpret_cast<uint16_t*>(w.w13), n13, seed, l.hidden, 0, 0.0625f);
    fill_exact_bf16<<<1024, 256>>>(reinterpret_cast<uint16_t*>(w.w2), n2, seed + 1, l.inter, 0, 0.0625f);
  } else if (!l.fp8()) {
    fill_bf16<<<1024, 256>>>(reinterpret_cast<uint16_t*>(w.w13), n13, seed, sigma1);
    fill_bf16<<<1024, 256>>>(reinterpret_cast<uint16_t*>(w.w2), n2, seed + 1, sigma2);
  } else {
    (exact ? fill_exact_e4m3 : fill_e4m3)<<<1024, 256>>>(w.w13, n13, seed);
    (exact ? fill_exact_e4m3 : fill_e4m3)<<<1024, 256>>>(w.w2, n2, seed + 1);
    const bool block = l.scheme == moe::Scheme::fp8_block;
    auto blocks = [](int v) { return size_t((v + 127) / 128); };
    const size_t s13 = l.experts_local * (block ? blocks(2 * l.inter) * blocks(l.hidden) : size_t(2) * l.inter);
    const size_t s2 = l.experts_local * (block ? blocks(l.hidden) * blocks(l.inter) : size_t(l.hidden));
    CUDA_CHECK(cudaMalloc(&w.w13_scale, s13 * 4));
    CUDA_CHECK(cudaMalloc(&w.w2_scale, s2 * 4));
    if (exact) {
      fill_power<<<256, 256>>>(w.w13_scale, s13, seed + 2, -10);
      fill_power<<<256, 256>>>(w.w2_scale, s2, seed + 3, -4);
    } else {
      fill_scale<<<256, 256>>>(w.w13_scale, s13, seed + 2, sigma1 / 112.0f);
      fill_scale<<<256, 256>>>(w.w2_scale, s2, seed + 3, sigma2 / 112.0f);
    }
  }
  pack_weights(w, l);
  return w;
}
void free_weights(Weights& w) {
  free_int_weights(w);
  free_packed(w);
  for (void* p : {static_cast<void*>(w.w13), static_cast<void*>(w.w2), static_cast<void*>(w.w13_scale), static_cast<void*>(w.w2_scale)})
    if (p) CUDA_CHECK(cudaFree(p));
  w = {};
}

Call make_call(const Layer& l, int tokens, const std::string& routing, uint64_t seed, bool exact) {
  Call c;
  c.tokens = tokens;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(1e-12, 1.0);
  std::vector<double> share(l.experts_global, 1.0);
  if (routing == "zipf") {
    std::vector<int> order(l.experts_global);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (int r = 0; r < l.experts_global; ++r) share[order[r]] = 1.0 / (r + 1);
  }
  c.host_ids.resize(size_t(tokens) * l.top_k);
  std::vector<float> weights(c.host_ids.size());
  std::vector<std::pair<double, int>> keys(l.experts_global);
  for (int m = 0; m < tokens; ++m) {
    // Exponential races: the top_k smallest are a draw without replacement.
    for (int e = 0; e < l.experts_global; ++e) keys[e] = {-std::log(unit(random)) / share[e], e};
    std::partial_sort(keys.begin(), keys.begin() + l.top_k, keys.end());
    double sum = 0;
    for (int t = 0; t < l.top_k; ++t) {
      int id = keys[t].second;
      if (routing == "single" && t == 0) id = 1;
      else if (routing == "single" && id == 1) id = 0;
      if (routing == "dropped" && random() % 3 == 0) id = -1;
      c.host_ids[m * l.top_k + t] = id;
      weights[m * l.top_k + t] = float(0.1 + unit(random));
      sum += weights[m * l.top_k + t];
    }
    for (int t = 0; t < l.top_k; ++t)
      if (l.top_k > 1) weights[m * l.top_k + t] /= float(sum);
  }
  const size_t elements = size_t(tokens) * l.hidden;
  CUDA_CHECK(cudaMalloc(&c.x, std::max<size_t>(elements, 1) * 2));
  CUDA_CHECK(cudaMalloc(&c.y, std::max<size_t>(elements, 1) * 2));
  CUDA_CHECK(cudaMalloc(&c.ids, std::max<size_t>(weights.size(), 1) * 4));
  CUDA_CHECK(cudaMalloc(&c.weights, std::max<size_t>(weights.size(), 1) * 4));
  if (tokens > 0 && exact) fill_exact_bf16<<<512, 256>>>(c.x, elements, seed * 31 + 7, l.hidden, l.fp8() ? 128 : 0, 1.0f);
  else if (tokens > 0) fill_bf16<<<512, 256>>>(c.x, elements, seed * 31 + 7, 1.0f);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(c.ids, c.host_ids.data(), weights.size() * 4, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(c.weights, weights.data(), weights.size() * 4, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(c.y, 0xff, std::max<size_t>(elements, 1) * 2));
  return c;
}
void free_call(Call& c) {
  for (void* p : {static_cast<void*>(c.x), static_cast<void*>(c.y), static_cast<void*>(c.ids), static_cast<void*>(c.weights)})
    if (p) CUDA_CHECK(cudaFree(p));
  c = {};
}

int* make_expert_map(const Layer& l) {
  if (l.experts_global == l.experts_local) return nullptr;
  std::vector<int> map(l.experts_global, -1);  // rank 0 of a linear split
  for (int e = 0; e < l.experts_local; ++e) map[e] = e;
  int* device = nullptr;
  CUDA_CHECK(cudaMalloc(&device, map.size() * 4));
  CUDA_CHECK(cudaMemcpy(device, map.data(), map.size() * 4, cudaMemcpyHostToDevice));
  return device;
}

}  // namespace bench
