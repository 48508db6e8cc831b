// Thin wrappers over the PTX that C++ has no name for: barriers in shared
// memory, the bulk tensor copy engine, asynchronous copies, programmatic
// dependent launch, register reallocation, ordered global accesses.
#pragma once
#include "kernels/nvidia/device/layer_args.h"

namespace moe {

MOE_DEVICE u32 smem_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

MOE_DEVICE void barrier_init(u32 bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
MOE_DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
MOE_DEVICE void barrier_arrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
MOE_DEVICE void barrier_arrive_expect(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
MOE_DEVICE void barrier_wait(u32 bar, u32 parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "retry:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finish;\n"
      "bra retry;\n"
      "finish:\n"
      "}\n" ::"r"(bar), "r"(parity) : "memory");
}

// A box of a 2-d tensor into shared memory; `inner` counts elements along the
// contiguous axis, `row` the other. Completion is counted in bytes on `bar`.
MOE_DEVICE void tensor_load(u32 dst, const TensorMap* map, u32 bar, int inner, int row, u64 policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(dst), "l"(map), "r"(bar), "r"(inner), "r"(row), "l"(policy)
      : "memory");
}
// The same box to the same offsets of every block of the cluster in `mask`, each
// block's own barrier counting its bytes.
MOE_DEVICE void tensor_load_multicast(u32 dst, const TensorMap* map, u32 bar, int inner, int row, u16 mask, u64 policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint"
      " [%0], [%1, {%3, %4}], [%2], %5, %6;" ::"r"(dst), "l"(map), "r"(bar), "r"(inner), "r"(row), "h"(mask), "l"(policy)
      : "memory");
}
MOE_DEVICE u32 cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
MOE_DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
// Arrives on the barrier at the same offset of another block of the cluster.
MOE_DEVICE void barrier_arrive_remote(u32 bar, u32 rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}\n" ::"r"(bar), "r"(rank)
      : "memory");
}
// A word into another block's shared memory at the same offset, counted in bytes on
// that block's barrier.
MOE_DEVICE void send_word(u32 dst, u32 value, u32 bar, u32 rank) {
  asm volatile(
      "{\n.reg .b32 to, at;\n"
      "mapa.shared::cluster.u32 to, %0, %3;\n"
      "mapa.shared::cluster.u32 at, %2, %3;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [to], %1, [at];\n}\n" ::"r"(dst), "r"(value), "r"(bar), "r"(rank)
      : "memory");
}
MOE_DEVICE void tensor_prefetch(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
MOE_DEVICE u64 policy_evict_first() {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
MOE_DEVICE u64 policy_evict_last() {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
MOE_DEVICE u64 policy_evict_normal() {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Four bytes, asynchronously; completion is reported by copy_arrive.
MOE_DEVICE void copy_async4(u32 dst, const void* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(dst), "l"(src) : "memory");
}
MOE_DEVICE void store_shared(u32 dst, float v) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(dst), "f"(v) : "memory"); }
// Arrives on `bar` once this thread's earlier copies have landed.
MOE_DEVICE void copy_arrive(u32 bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

// Contiguous bytes (a multiple of 16) from shared to global memory by the copy engine.
MOE_DEVICE void bulk_store(void* dst, u32 src, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(src), "r"(bytes) : "memory");
}
// And from global to shared memory, counted in bytes on `bar`.
MOE_DEVICE void bulk_load(u32 dst, const void* src, u32 bytes, u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst), "l"(src),
               "r"(bytes), "r"(bar)
               : "memory");
}
MOE_DEVICE void bulk_load(u32 dst, const void* src, u32 bytes, u32 bar, u64 policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(dst),
               "l"(src), "r"(bytes), "r"(bar), "l"(policy)
               : "memory");
}
// The same bytes to the same offset of every block of the cluster in `mask`, each block's own barrier
// counting them.
MOE_DEVICE void bulk_load_multicast(u32 dst, const void* src, u32 bytes, u32 bar, u16 mask, u64 policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint"
      " [%0], [%1], %2, [%3], %4, %5;" ::"r"(dst), "l"(src), "r"(bytes), "r"(bar), "h"(mask), "l"(policy)
      : "memory");
}
MOE_DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// All but the latest kPending groups of this thread have been read from shared memory.
template <int kPending>
MOE_DEVICE void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
MOE_DEVICE void bulk_wait_all() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Orders this thread's ordinary accesses against the copy engine's and wgmma's.
MOE_DEVICE void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }

// The same for shared memory alone, and a fraction of the time.
MOE_DEVICE void proxy_fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

MOE_DEVICE void dependents_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
MOE_DEVICE void dependency_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

template <int kRegisters>
MOE_DEVICE void registers_raise() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
MOE_DEVICE void registers_lower() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Named barrier among `threads` threads; 0 belongs to __syncthreads.
MOE_DEVICE void sync_threads(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

MOE_DEVICE u32 load_acquire(const u32* p) {
  u32 v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
MOE_DEVICE u32 load_relaxed(const u32* p) {
  u32 v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
MOE_DEVICE void add_release(u32* p, u32 v) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
MOE_DEVICE u32 fetch_add_acq_rel(u32* p, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
  return old;
}

// Four 8x8 matrices of 16-bit elements, stored transposed: lane l names the
// 16-byte row l%8 of matrix l/8.
MOE_DEVICE void store_matrix_transposed(u32 dst, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(dst), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}
MOE_DEVICE void store_matrix_transposed(u32 dst, u32 a, u32 b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(dst), "r"(a), "r"(b)
               : "memory");
}

// Lane l names the 16-byte row l%8 of matrix l/8, and gets bytes 4(l%4).. of row l/4 of each.
MOE_DEVICE void load_matrix(u32 (&v)[4], u32 src) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(src)
               : "memory");
}
MOE_DEVICE void store_matrix(u32 dst, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(dst), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

// Nanoseconds of the device's clock, for -DMOE_TRACE builds only.
MOE_DEVICE u64 global_time() {
  u64 t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}
#if defined(MOE_TRACE)
#define MOE_STAMP(args, slot) ((args).trace[blockIdx.x * 16 + (slot)] = ::moe::global_time())
#else
#define MOE_STAMP(args, slot) ((void)0)
#endif

}  // namespace moe
