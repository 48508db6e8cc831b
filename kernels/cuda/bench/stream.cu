// How fast can expert weights be streamed into shared memory? One producer thread a
// block, no arithmetic: order of tiles, box shape, stages and L2 hints compared.
//   stream [FILE.json]
#include <algorithm>
#include <functional>

#include "kernels/cuda/bench/workspace.h"

using namespace moe;

namespace {

constexpr int kStageBytes = 32768;

struct StreamArgs {
  TensorMap map;
  const u8* raw;     // the same bytes, for plain bulk copies
  int tiles, steps;  // tiles of 256 rows; steps of 128 bytes in a row
  int order;         // 0: steps split evenly and contiguously, 1: tiles in turn, 2: half tiles in turn
  int boxes, box_rows;
  int policy;        // 0 none (normal), 1 evict first
  int bulk;          // 1: contiguous 16 KB pieces instead of boxes
  u32* sink;
};

__device__ void bulk_load(u32 dst, const u8* src, u32 bytes, u32 bar, u64 policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(dst),
               "l"(src), "r"(bytes), "r"(bar), "l"(policy)
               : "memory");
}

template <int kStages>
__global__ void __launch_bounds__(64, 1) stream_kernel(const __grid_constant__ StreamArgs a) {
  extern __shared__ u8 raw[];
  const u32 base = (smem_address(raw) + 1023) & ~1023u;
  __shared__ alignas(8) u64 bars[2 * kStages];
  const u32 bar = smem_address(bars);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) barrier_init(bar + i * 16, 1), barrier_init(bar + i * 16 + 8, 1);
    barrier_init_fence();
  }
  __syncthreads();
  const i64 line = static_cast<i64>(a.tiles) * a.steps;
  const int blocks = gridDim.x, block = blockIdx.x;
  const int unit = a.order == 2 ? a.steps / 2 : a.steps;
  const int units = static_cast<int>(line / unit);
  const i64 begin = line * block / blocks, end = line * (block + 1) / blocks;
  const int mine = a.order == 0 ? static_cast<int>(end - begin) : (units - block + blocks - 1) / blocks * unit;
  if (threadIdx.x == 0) {
    const u64 policy = a.policy ? policy_evict_first() : policy_evict_normal();
    int stage = 0;
    u32 parity = 0;
    for (int i = 0; i < mine; ++i) {
      const i64 at = a.order == 0 ? begin + i : static_cast<i64>(block + i / unit * blocks) * unit + i % unit;
      const int tile = static_cast<int>(at / a.steps), step = static_cast<int>(at % a.steps);
      barrier_wait(bar + stage * 16 + 8, parity ^ 1);
      barrier_arrive_expect(bar + stage * 16, kStageBytes);
      if (a.bulk) {
        for (int b = 0; b < 2; ++b)
          bulk_load(base + stage * kStageBytes + b * 16384, a.raw + at * kStageBytes + b * 16384, 16384, bar + stage * 16, policy);
      } else {
        for (int b = 0; b < a.boxes; ++b)
          tensor_load(base + stage * kStageBytes + b * a.box_rows * 128, &a.map, bar + stage * 16, step * 128, tile * 256 + b * a.box_rows, policy);
      }
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
  } else if (threadIdx.x == 32) {
    int stage = 0;
    u32 parity = 0, sum = 0;
    for (int i = 0; i < mine; ++i) {
      barrier_wait(bar + stage * 16, parity);
      sum += raw[stage * 1024];
      barrier_arrive(bar + stage * 16 + 8);
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
    if (sum == 0xffffffffu) *a.sink = sum;
  }
}

}  // namespace

int main(int argc, char** argv) {
  FILE* out = argc > 1 ? std::fopen(argv[1], "w") : nullptr;
  const size_t pool_bytes = size_t{6} << 30;
  u8* pool;
  u32* sink;
  CUDA_CHECK(cudaMalloc(&pool, pool_bytes));
  CUDA_CHECK(cudaMalloc(&sink, 4));
  CUDA_CHECK(cudaMemset(pool, 0x5a, pool_bytes));
  if (out) std::fprintf(out, "{\"rows\": [\n");
  bool first = true;
  for (int columns : {2048, 7168}) {
    for (size_t megabytes : {25, 100, 400}) {
      for (int order : {0, 1, 2}) {
        for (int variant = 0; variant < 10; ++variant) {
          // stages 6 and 3, hints, promotion, boxes, bulk
          const int stages = variant == 1 ? 3 : variant == 2 ? 4 : 6;
          const int policy = variant == 3 ? 0 : 1;
          const auto promotion = variant == 4 ? CU_TENSOR_MAP_L2_PROMOTION_NONE : variant == 5 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
          const int box_rows = variant == 6 ? 256 : variant == 7 ? 64 : 128;
          const int bulk = variant == 8, two = variant == 9;
          StreamArgs a{};
          a.steps = columns / 128;
          a.tiles = int(megabytes * 1000000 / (size_t(256) * columns));
          a.order = order, a.policy = policy, a.bulk = bulk, a.sink = sink;
          a.box_rows = box_rows, a.boxes = 256 / box_rows;
          const size_t bytes = size_t(a.tiles) * 256 * columns;
          const int sets = int(std::min<size_t>(8, pool_bytes / bytes));
          cudaStream_t stream;
          CUDA_CHECK(cudaStreamCreate(&stream));
          cudaGraph_t graph;
          cudaGraphExec_t exec;
          auto kernel = two || stages == 3 ? stream_kernel<3> : stages == 4 ? stream_kernel<4> : stream_kernel<6>;
          const int shared = (two ? 3 : stages) * kStageBytes + 1024;
          CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
          CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
          for (int s = 0; s < 8; ++s) {
            a.raw = pool + bytes * (s % sets);
            a.map = bench::make_map(const_cast<u8*>(a.raw), true, size_t(a.tiles) * 256, columns, box_rows, promotion);
            kernel<<<two ? 264 : 132, 64, shared, stream>>>(a);
          }
          CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
          CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
          std::vector<float> us;
          cudaEvent_t e0, e1;
          CUDA_CHECK(cudaEventCreate(&e0));
          CUDA_CHECK(cudaEventCreate(&e1));
          for (int r = 0; r < 14; ++r) {
            CUDA_CHECK(cudaEventRecord(e0, stream));
            CUDA_CHECK(cudaGraphLaunch(exec, stream));
            CUDA_CHECK(cudaEventRecord(e1, stream));
            CUDA_CHECK(cudaStreamSynchronize(stream));
            float ms;
            CUDA_CHECK(cudaEventElapsedTime(&ms, e0, e1));
            if (r > 2) us.push_back(ms * 1000 / 8);
          }
          std::sort(us.begin(), us.end());
          const double t = us[us.size() / 2];
          static const char* names[] = {"6 stages", "3 stages", "4 stages", "no hint", "no promotion", "promotion 128", "box 256", "box 64", "bulk 16K", "2 blocks x 3"};
          static const char* orders[] = {"split", "turn", "half turn"};
          std::printf("K %d %3zu MB %-9s %-14s %7.1f us %6.0f GB/s\n", columns, megabytes, orders[order], names[variant], t, bytes / t / 1000);
          if (out) std::fprintf(out, "%s{\"columns\": %d, \"bytes\": %zu, \"order\": \"%s\", \"variant\": \"%s\", \"us\": %.2f, \"GBps\": %.0f}", first ? "" : ",\n", columns, bytes, orders[order], names[variant], t, bytes / t / 1000);
          first = false;
          CUDA_CHECK(cudaGraphExecDestroy(exec));
          CUDA_CHECK(cudaGraphDestroy(graph));
          CUDA_CHECK(cudaStreamDestroy(stream));
        }
      }
    }
  }
  if (out) std::fprintf(out, "\n]}\n"), std::fclose(out);
}
