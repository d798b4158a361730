#pragma once

// Reductions over a warp, a block and a grid. Blocks are 1-D and hold whole warps (blockDim.x a multiple of 32).

constexpr unsigned int FULL_WARP = 0xffffffffu;

__device__ inline float infinity() { return __int_as_float(0x7f800000); }

struct Sum {
    template <class T>
    __device__ T operator()(T a, T b) const { return a + b; }
};

/// The larger one; a NaN loses, as with fmaxf.
struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
    __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};

/// The state of an online softmax: `sum` is that of exp(x - max). {-infinity(), 0} is that of no element.
struct MaxSum {
    float max;
    float sum;
};

/// Merges two softmax states of exp(scale (x - max)); the same bits whichever comes first.
struct MergeMaxSum {
    float scale = 1.0f;

    __device__ MaxSum operator()(MaxSum a, MaxSum b) const {
        const MaxSum low = a.max < b.max ? a : b;
        const MaxSum high = a.max < b.max ? b : a;
        if (low.max == high.max) return {high.max, low.sum + high.sum};
        return {high.max, fmaf(low.sum, expf(scale * (low.max - high.max)), high.sum)};
    }
};

template <class T>
__device__ T shuffle_xor(T value, int mask) {
    return __shfl_xor_sync(FULL_WARP, value, mask);
}

__device__ inline MaxSum shuffle_xor(MaxSum value, int mask) {
    return {shuffle_xor(value.max, mask), shuffle_xor(value.sum, mask)};
}

/// The reduction over the warp's 32 lanes, in every lane, in a fixed order.
template <class T, class Op>
__device__ T warp_reduce(T value, Op op) {
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) value = op(value, shuffle_xor(value, mask));
    return value;
}

/// The reduction over the block, in every thread, in a fixed order. All threads call it, as often as they like.
template <class T, class Op>
__device__ T block_reduce(T value, Op op, T identity) {
    __shared__ T by_warp[32];
    const int lane = threadIdx.x % 32;
    const int warps = blockDim.x / 32;
    value = warp_reduce(value, op);
    if (warps == 1) return value;
    if (lane == 0) by_warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = warp_reduce(lane < warps ? by_warp[lane] : identity, op);
    __syncthreads();
    return value;
}

__device__ inline float block_sum(float value) { return block_reduce(value, Sum{}, 0.0f); }
__device__ inline double block_sum(double value) { return block_reduce(value, Sum{}, 0.0); }
__device__ inline float block_max(float value) { return block_reduce(value, Max{}, -infinity()); }

/// True in all threads of the block that arrives last of `blocks` (a 1-D grid's); what thread 0 of the others wrote is
/// visible to it. `arrived` starts at 0 and is 0 again when all have arrived, so the kernel can be launched again as it is.
__device__ inline bool last_block(unsigned int* arrived, unsigned int blocks = gridDim.x) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(arrived, blocks - 1) == blocks - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/// The sum over a 1-D grid, in thread 0 of one block only (true there), in an order fixed by the grid. `by_block` has
/// room for gridDim.x values, `arrived` is as in last_block. One launch; nothing to reset in between.
__device__ inline bool grid_sum(double value, double* by_block, unsigned int* arrived, double* total) {
    *total = block_sum(value);
    if (gridDim.x == 1) return threadIdx.x == 0;
    if (threadIdx.x == 0) by_block[blockIdx.x] = *total;
    if (!last_block(arrived)) return false;
    value = 0.0;
    for (unsigned int i = threadIdx.x; i < gridDim.x; i += blockDim.x) value += __ldcg(by_block + i);
    *total = block_sum(value);
    return threadIdx.x == 0;
}
