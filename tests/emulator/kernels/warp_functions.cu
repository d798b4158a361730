// Warp collectives: each lane brings x[lane] and takes away y[lane].
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

#define LANES(name, T, R, expression) \
    __global__ void name(const T* x, R* y, int p, int width) { const int lane = threadIdx.x; const T v = x[lane]; y[lane] = expression; }
constexpr unsigned ALL = 0xffffffffu;

LANES(shfl, int, int, __shfl_sync(ALL, v, p, width))
LANES(shfl_rotated, int, int, __shfl_sync(ALL, v, lane + p, width))
LANES(shfl_up, int, int, __shfl_up_sync(ALL, v, p, width))
LANES(shfl_down, int, int, __shfl_down_sync(ALL, v, p, width))
LANES(shfl_xor, int, int, __shfl_xor_sync(ALL, v, p, width))
LANES(shfl_double, double, double, __shfl_xor_sync(ALL, v, p, width))
#ifdef CPU_CUDA  // the device shuffles no vectors
LANES(shfl_vector, float4, float, __shfl_xor_sync(ALL, v, p, width).w)
#endif
LANES(ballot_of, int, unsigned, __ballot_sync(ALL, v > p))
LANES(all_of, int, int, __all_sync(ALL, v > p))
LANES(any_of, int, int, __any_sync(ALL, v > p))
LANES(match_any, int, unsigned, __match_any_sync(ALL, v & 3))
LANES(reduce_add, int, int, __reduce_add_sync(ALL, v))
LANES(reduce_min, int, int, __reduce_min_sync(ALL, v))
LANES(reduce_max, int, int, __reduce_max_sync(ALL, v))
LANES(reduce_and, unsigned, unsigned, __reduce_and_sync(ALL, v))
LANES(reduce_or, unsigned, unsigned, __reduce_or_sync(ALL, v))
LANES(reduce_xor, unsigned, unsigned, __reduce_xor_sync(ALL, v))

__global__ void match_all(const int* x, unsigned* y, int p, int width) {
    int equal;
    const unsigned lanes = __match_all_sync(ALL, x[threadIdx.x] / p, &equal);
    y[threadIdx.x] = lanes + equal;
}

// Two halves of the warp at work at the same time, each under its own mask.
__global__ void two_masks(const int* x, int* y, int p, int width) {
    const int lane = threadIdx.x;
    if (lane < 16) y[lane] = __reduce_add_sync(0x0000ffffu, x[lane]);
    else y[lane] = __reduce_max_sync(0xffff0000u, x[lane]);
}

__global__ void block_votes(const int* x, int* y, int p, int width) {
    const int v = x[threadIdx.x];
    const int count = __syncthreads_count(v > p), all = __syncthreads_and(v > p), any = __syncthreads_or(v > p);
    y[threadIdx.x] = count * 100 + (all != 0) * 10 + (any != 0);
}

template <int Size>
__global__ void tile_sum(const int* x, int* y, int p, int width) {
    const auto block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<Size>(block);
    y[block.thread_rank()] = cg::reduce(tile, x[threadIdx.x], cg::plus<int>()) + 100000 * static_cast<int>(tile.meta_group_rank());
}
template <int Size>
__global__ void tile_scans(const int* x, int* y, int p, int width) {
    const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
    y[threadIdx.x] = cg::inclusive_scan(tile, x[threadIdx.x]) * 1000 + cg::exclusive_scan(tile, x[threadIdx.x]);
}
__global__ void tile_shuffles(const int* x, int* y, int p, int width) {
    const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    const int v = x[threadIdx.x];
    y[threadIdx.x] = tile.shfl(v, 2) + 100 * tile.shfl_down(v, 1) + 10000 * static_cast<int>(tile.ballot(v > p));
}
// A place for each lane that is here, all of them by one atomic.
__device__ int claim(int* count) {
    const unsigned together = __activemask(), leader = __ffs(together) - 1, lane = threadIdx.x % 32;
    int first = 0;
    if (lane == leader) first = atomicAdd(count, __popc(together));
    return __shfl_sync(together, first, leader) + __popc(together & ((1u << lane) - 1));
}
__global__ void places(const int* x, int* y, int p, int width) {
    __shared__ int counts[2];
    if (threadIdx.x < 2) counts[threadIdx.x] = 0;
    __syncthreads();
    int place = -1;
    if (x[threadIdx.x] > p) place = claim(&counts[0]);
    else if (x[threadIdx.x] % 2) place = 100 * cg::coalesced_threads().size() + claim(&counts[1]);
    __syncthreads();
    y[threadIdx.x] = place + 10000 * counts[0] + 1000000 * counts[1];
}
__global__ void odd_lanes(const int* x, int* y, int p, int width) {
    const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
    const auto group = cg::binary_partition(warp, threadIdx.x % 2 == 1);
    y[threadIdx.x] = cg::reduce(group, x[threadIdx.x], cg::greater<int>()) * 100 + static_cast<int>(group.thread_rank());
}
