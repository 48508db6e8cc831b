// The layer in fp64 on the device, written for plainness: same quantised operands,
// same declared rounding points (h: fp32 then E4M3 for block scales; bf16, then
// E4M3 per token, for ptpc; bf16 for bf16 and integer weights. pair output: bf16. y: bf16), sums in fp64.
#include <algorithm>
#include <cmath>

#include "kernels/device/numeric.h"
#include "kernels/cuda/bench/bench.h"

namespace bench {
namespace {

__device__ double e4m3_value(uint8_t c) {
  const int e = (c >> 3) & 15, m = c & 7;
  if ((c & 127) == 127) return nan("");
  const double v = e == 0 ? m * 0.001953125 : ldexp(1.0 + m * 0.125, e - 7);
  return c & 128 ? -v : v;
}
__device__ double bf16_value(uint16_t b) { return double(__uint_as_float(uint32_t(b) << 16)); }
__device__ double round_bf16(double v) { return bf16_value(uint16_t(moe::pack_bf16(float(v), 0.0f))); }

struct Problem {
  int scheme, hidden, inter, top_k, weight_on_input, tokens;
  const uint8_t *w13, *w2;
  const float *w13_scale, *w2_scale;
  const uint16_t* x;
  const int *ids, *map;
  const float* weights;
  IntMatrix int13, int2;  // integer weights: (code - zero point) * scale, exactly
  int bits, group;
};

// Whether activations stay bf16.
__device__ bool is_wide(int scheme) { return scheme >= int(moe::Scheme::half); }

// Values of one row quantised: dequantised results without their scale, and the
// scale of each group of 128 (ptpc: the same one for all).
template <class Value>
__device__ void quantise_group(Value value, int length, int group, double amax, int scheme, double* codes, double* scale) {
  float s;
  if (scheme == 0) s = fmaxf(float(amax), 1e-10f) / 448.0f;
  else s = fmaxf(float(amax) / 448.0f, 1.0f / (448.0f * 512.0f));
  for (int i = threadIdx.x; i < length; i += blockDim.x) codes[i] = e4m3_value(moe::encode_e4m3(float(value(i) / double(s))));
  if (threadIdx.x == 0) *scale = s;
}
template <class Value>
__device__ double block_amax(Value value, int length) {
  __shared__ double shared[256];
  double amax = 0;
  for (int i = threadIdx.x; i < length; i += blockDim.x) {
    const double v = fabs(value(i));
    if (isfinite(v) && v > amax) amax = v;
  }
  shared[threadIdx.x] = amax;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (threadIdx.x < d) shared[threadIdx.x] = fmax(shared[threadIdx.x], shared[threadIdx.x + d]);
    __syncthreads();
  }
  amax = shared[0];
  __syncthreads();
  return amax;
}
// One block a row: rows of `length` values to operands and group scales.
template <class Load>
__device__ void quantise_row(Load load, int length, int scheme, double* codes, double* scales) {
  const int groups = (length + 127) / 128;
  if (is_wide(scheme)) {
    for (int i = threadIdx.x; i < length; i += blockDim.x) codes[i] = load(i);
    for (int g = threadIdx.x; g < groups; g += blockDim.x) scales[g] = 1.0;
    return;
  }
  const double whole = scheme == 1 ? block_amax(load, length) : 0;
  for (int g = 0; g < groups; ++g) {
    auto part = [&](int i) { return load(g * 128 + i); };
    const int n = min(128, length - g * 128);
    const double amax = scheme == 1 ? whole : block_amax(part, n);
    quantise_group(part, n, g, amax, scheme, codes + g * 128, scales + g);
  }
}

__global__ void quantise_x(Problem p, double* codes, double* scales) {
  const size_t m = blockIdx.x;
  quantise_row([&](int k) { return bf16_value(p.x[m * p.hidden + k]); }, p.hidden, p.scheme, codes + m * p.hidden,
               scales + m * ((p.hidden + 127) / 128));
}

// sum over k of a[k] w[k], scales by group of 128; one warp, result in lane 0.
__device__ double dot(const double* a, const double* a_scale, const uint8_t* w, const float* w_scale, int length, int scheme) {
  const int lane = threadIdx.x % 32;
  double total = 0;
  for (int g = 0; g * 128 < length; ++g) {
    double part = 0;
    for (int k = g * 128 + lane; k < min(length, g * 128 + 128); k += 32)
      part += a[k] * (scheme == 2 ? bf16_value(reinterpret_cast<const uint16_t*>(w)[k]) : e4m3_value(w[k]));
    total += part * a_scale[g] * (scheme == 0 ? double(w_scale[g]) : 1.0);
  }
  for (int d = 16; d > 0; d /= 2) total += __shfl_down_sync(0xffffffffu, total, d);
  return total;
}

// The same with one row of integer weights, `row` counting over the experts.
__device__ double dot_integers(const double* a, const IntMatrix& w, size_t expert, size_t row, int length, int bits, int group) {
  const int lane = threadIdx.x % 32, groups = (length + group - 1) / group;
  double total = 0;
  for (int k = lane; k < length; k += 32) {
    const size_t g = row * groups + (w.group_of ? w.group_of[expert * length + k] : k / group);
    const int zero = w.zeros ? w.zeros[g] : 1 << (bits - 1);
    total += a[k] * (w.codes[row * length + k] - zero) * bf16_value(w.scales[g]);
  }
  for (int d = 16; d > 0; d /= 2) total += __shfl_down_sync(0xffffffffu, total, d);
  return total;
}

__device__ int pair_expert(const Problem& p, int pair) {
  const int id = p.ids[pair];
  return id < 0 ? -1 : (p.map ? p.map[id] : id);
}

// One warp an element of h.
__global__ void gate_up(Problem p, int first_pair, const double* codes, const double* scales, double* h) {
  const int pair = first_pair + blockIdx.y, n = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int e = pair_expert(p, pair);
  if (n >= p.inter || e < 0) return;
  const size_t m = pair / p.top_k, bytes = p.scheme == 2 ? 2 : 1;
  const int k_groups = (p.hidden + 127) / 128, row_groups = (2 * p.inter + 127) / 128;
  double v[2];
  for (int half = 0; half < 2; ++half) {
    const size_t row = n + half * p.inter;
    const float* ws = p.scheme == 0 ? p.w13_scale + (size_t(e) * row_groups + row / 128) * k_groups : nullptr;
    v[half] = p.bits != 0 ? dot_integers(codes + m * p.hidden, p.int13, e, size_t(e) * 2 * p.inter + row, p.hidden, p.bits, p.group)
                          : dot(codes + m * p.hidden, scales + m * k_groups,
                                p.w13 + (size_t(e) * 2 * p.inter + row) * p.hidden * bytes, ws, p.hidden, p.scheme);
    if (p.scheme == 1) v[half] *= double(p.w13_scale[size_t(e) * 2 * p.inter + row]);
    if (p.weight_on_input) v[half] *= double(p.weights[pair]);
  }
  if (threadIdx.x % 32 == 0) {
    const double act = v[0] / (1.0 + exp(-v[0])) * v[1];
    h[size_t(blockIdx.y) * p.inter + n] = p.scheme == 0 ? double(float(act)) : round_bf16(act);
  }
}
__global__ void quantise_h(Problem p, int first_pair, const double* h, double* codes, double* scales) {
  if (pair_expert(p, first_pair + blockIdx.x) < 0) return;
  const size_t r = blockIdx.x;
  quantise_row([&](int n) { return h[r * p.inter + n]; }, p.inter, p.scheme, codes + r * p.inter, scales + r * ((p.inter + 127) / 128));
}
// One warp an element of y.
__global__ void down(Problem p, int first_pair, const double* codes, const double* scales, double* y) {
  const size_t m = first_pair / p.top_k + blockIdx.y;
  const int k = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (k >= p.hidden) return;
  const size_t bytes = p.scheme == 2 ? 2 : 1;
  const int n_groups = (p.inter + 127) / 128, row_groups = (p.hidden + 127) / 128;
  double sum = 0;
  for (int t = 0; t < p.top_k; ++t) {
    const int pair = int(m) * p.top_k + t, e = pair_expert(p, pair);
    if (e < 0) continue;
    const size_t r = pair - first_pair;
    const float* ws = p.scheme == 0 ? p.w2_scale + (size_t(e) * row_groups + k / 128) * n_groups : nullptr;
    double v = p.bits != 0 ? dot_integers(codes + r * p.inter, p.int2, e, size_t(e) * p.hidden + k, p.inter, p.bits, p.group)
                           : dot(codes + r * p.inter, scales + r * n_groups, p.w2 + (size_t(e) * p.hidden + k) * p.inter * bytes, ws,
                                 p.inter, p.scheme);
    if (p.scheme == 1) v *= double(p.w2_scale[size_t(e) * p.hidden + k]);
    if (!p.weight_on_input) v *= double(p.weights[pair]);
    sum += round_bf16(v);
  }
  if (threadIdx.x % 32 == 0) y[m * p.hidden + k] = round_bf16(sum);
}

// Per token: squared difference, squared reference, elements that are not finite.
__global__ void compare(int hidden, const uint16_t* y, const double* reference, double* out) {
  __shared__ double d2[256], r2[256], bad[256];
  const size_t m = blockIdx.x;
  double a = 0, b = 0, c = 0;
  for (int k = threadIdx.x; k < hidden; k += 256) {
    const double v = bf16_value(y[m * hidden + k]), r = reference[m * hidden + k];
    if (!isfinite(v)) c += 1;
    a += (v - r) * (v - r);
    b += r * r;
  }
  d2[threadIdx.x] = a, r2[threadIdx.x] = b, bad[threadIdx.x] = c;
  __syncthreads();
  for (int d = 128; d > 0; d /= 2) {
    if (threadIdx.x < d) d2[threadIdx.x] += d2[threadIdx.x + d], r2[threadIdx.x] += r2[threadIdx.x + d], bad[threadIdx.x] += bad[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[3 * m] = d2[0], out[3 * m + 1] = r2[0], out[3 * m + 2] = bad[0];
}

double* allocate(size_t count) {
  double* p = nullptr;
  CUDA_CHECK(cudaMalloc(&p, std::max<size_t>(count, 1) * 8));
  return p;
}

}  // namespace

double* make_reference(const Layer& l, const Weights& w, const Call& c, const int* expert_map) {
  if (c.tokens == 0) return allocate(1);
  const Problem p{int(l.scheme), l.hidden, l.inter, l.top_k, l.weight_on_input, c.tokens, w.w13, w.w2, w.w13_scale, w.w2_scale,
                  c.x, c.ids, expert_map, c.weights, w.int13, w.int2, l.int_bits(), l.group};
  const size_t tokens = c.tokens, k_groups = (l.hidden + 127) / 128, n_groups = (l.inter + 127) / 128;
  const int batch = 512;  // tokens at a time, to bound memory
  double *codes = allocate(tokens * l.hidden), *scales = allocate(tokens * k_groups), *y = allocate(tokens * l.hidden);
  const size_t rows = size_t(batch) * l.top_k;
  double *h = allocate(rows * l.inter), *h_codes = allocate(rows * l.inter), *h_scales = allocate(rows * n_groups);
  quantise_x<<<c.tokens, 256>>>(p, codes, scales);
  for (int m = 0; m < c.tokens; m += batch) {
    const int count = std::min(batch, c.tokens - m), pairs = count * l.top_k;
    gate_up<<<dim3((l.inter + 7) / 8, pairs), 256>>>(p, m * l.top_k, codes, scales, h);
    quantise_h<<<pairs, 256>>>(p, m * l.top_k, h, h_codes, h_scales);
    down<<<dim3((l.hidden + 7) / 8, count), 256>>>(p, m * l.top_k, h_codes, h_scales, y);
  }
  CUDA_CHECK(cudaGetLastError());
  for (double* q : {codes, scales, h, h_codes, h_scales}) CUDA_CHECK(cudaFree(q));
  return y;
}

Error compare_output(const Layer& l, const Call& c, const double* reference) {
  Error error;
  if (c.tokens == 0) return error;
  const size_t tokens = c.tokens;
  double* out = allocate(tokens * 3);
  compare<<<c.tokens, 256>>>(l.hidden, c.y, reference, out);
  CUDA_CHECK(cudaGetLastError());
  std::vector<double> sums(tokens * 3);
  CUDA_CHECK(cudaMemcpy(sums.data(), out, sums.size() * 8, cudaMemcpyDeviceToHost));
  double d2 = 0, r2 = 0;
  for (size_t m = 0; m < tokens; ++m) {
    const double d = sums[3 * m], r = sums[3 * m + 1];
    d2 += d, r2 += r;
    error.non_finite += static_cast<long long>(sums[3 * m + 2]);
    const double token = r > 0 ? std::sqrt(d / r) : (d == 0 ? 0 : INFINITY);
    if (!(token <= error.worst_token)) error.worst_token = token;
  }
  error.relative_l2 = r2 > 0 ? std::sqrt(d2 / r2) : (d2 == 0 ? 0 : INFINITY);
  CUDA_CHECK(cudaFree(out));
  return error;
}

}  // namespace bench
