#pragma once

// Copies of boxes of a matrix by the tensor memory accelerator, for compute capability 9.0 and later: one thread starts
// them, barriers in shared memory count their bytes. On the CPU there is nothing to call.

/// A matrix as the host describes it to the accelerator (CUtensorMap), passed by value as `const __grid_constant__`.
struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

#ifndef CPU_CUDA

/// Brings the description to the cache that the copies read it from.
__device__ inline void prefetch(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" : : "l"(&map) : "memory");
}

/// Starts to copy the box at (x, y) of the matrix, x along its rows in memory, to the same place of every block of the
/// cluster in `blocks` (a bit each), whose barriers each count its bytes. What lies outside the matrix is zero.
__device__ inline void load_box_to(unsigned int blocks, unsigned int shared, const TensorMap& map, int x, int y,
                                   unsigned int barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3, %4}], [%2], %5;"
                 : : "r"(shared), "l"(&map), "r"(barrier), "r"(x), "r"(y), "h"(static_cast<unsigned short>(blocks))
                 : "memory");
}

/// The same for this block alone.
__device__ inline void load_box(unsigned int shared, const TensorMap& map, int x, int y, unsigned int barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 : : "r"(shared), "l"(&map), "r"(barrier), "r"(x), "r"(y) : "memory");
}

/// Starts to copy a box of shared memory to (x, y) of the matrix; what lies outside is left out. This thread's stores of
/// boxes form a batch with close_stores.
__device__ inline void store_box(const TensorMap& map, int x, int y, unsigned int shared) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                 : : "l"(&map), "r"(shared), "r"(x), "r"(y) : "memory");
}

__device__ inline void close_stores() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }

/// Until the shared memory of all batches of stores but the last PENDING has been read.
template <int PENDING>
__device__ inline void wait_for_stores() {
    asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(PENDING) : "memory");
}

/// This thread arrives, and the phase lasts until so many bytes have been copied, too.
__device__ inline void arrive_and_expect(unsigned int barrier, unsigned int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
}

/// This thread arrives at the same barrier of block `rank` of the cluster. No fence: it has only read what is written
/// again after that, and one of the cluster's scope would wait for all stores of the thread to reach the L2 cache.
__device__ inline void arrive_at(unsigned int barrier, unsigned int rank) {
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n}"
                 : : "r"(barrier), "r"(rank) : "memory");
}

/// Barriers that this thread has started are there for copies and for the cluster after the next synchronization.
__device__ inline void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory"); }

__device__ inline unsigned int rank_in_cluster() {
    unsigned int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/// The number of this thread's warpgroup, which the compiler knows to be the same in a warp.
__device__ inline int warpgroup() { return __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 128, 0); }

/// Until all threads of the cluster are here.
__device__ inline void synchronize_cluster() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" : : : "memory");
}

/// Until the 128 threads of this warpgroup are here; `number`, from 1 to 15, is the warpgroup's own.
__device__ inline void synchronize_warpgroup(int number) {
    asm volatile("bar.sync %0, 128;" : : "r"(number) : "memory");
}

/// All warps of a warpgroup change the registers that each of their threads has.
template <int REGISTERS>
__device__ inline void shrink_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(REGISTERS)); }
template <int REGISTERS>
__device__ inline void grow_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(REGISTERS)); }

#endif
