#include "layers/row_items.cuh"
#include "layers/softmax.cuh"

// What turns weights relative to `max` into probabilities. 1 / 0 for a row of -inf, whose probabilities are NaN.
__device__ inline float norm(float max, MaxSum row, float scale) {
    return (max == row.max ? 1.0f : expf(scale * (max - row.max))) / row.sum;
}

// Publishes this part's state and merges those of all parts of the row, in a fixed order. A state is one word, never
// 0: its sum is at least 1, or NaN, or its maximum is -inf. The parts of a row are neighbours in the grid, which is
// started in order, so a block waits only for blocks that are running or next in line.
__device__ inline MaxSum merge_parts(MaxSum own, unsigned long long* states, int part, int parts, MergeMaxSum merge) {
    __shared__ MaxSum row;
    if (threadIdx.x < 32) {
        const unsigned long long word =
            static_cast<unsigned long long>(__float_as_uint(own.sum)) << 32 | __float_as_uint(own.max);
        if (threadIdx.x == 0) atomicExch(states + part, word);
        MaxSum all = {-infinity(), 0.0f};
        for (int p = threadIdx.x; p < parts; p += 32) {
            unsigned long long other = atomicAdd(states + p, 0ull);
            for (; other == 0; other = atomicAdd(states + p, 0ull)) __nanosleep(50);
            all = merge(all, {__uint_as_float(static_cast<unsigned int>(other)),
                              __uint_as_float(static_cast<unsigned int>(other >> 32))});
        }
        all = warp_reduce(all, merge);
        if (threadIdx.x == 0) row = all;
    }
    __syncthreads();
    return row;
}

// Softmax of x / temperature over rows, each held in the registers of `parts` blocks, `size` columns in each: one read
// and one write. WIDTH is 4 where rows begin on 16-byte boundaries, else 1. `states` is zero where parts > 1.
template <int ITEMS, int WIDTH>
__global__ void __launch_bounds__(256, WIDTH == 4 ? 5 : 3)
    softmax(const float* x, float* y, unsigned long long* states, int cols, int size, int parts, float temperature) {
    const long long row = blockIdx.x / parts;
    const int part = blockIdx.x % parts;
    const long long begin = row * cols + static_cast<long long>(part) * size;
    const int count = min(size, cols - part * size);
    const float scale = 1.0f / temperature;
    const MergeMaxSum merge = {scale};
    float item[ITEMS];
    load_items<ITEMS, WIDTH>(x + begin, count, -infinity(), item);
    MaxSum own = {-infinity(), 0.0f};
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) own.max = fmaxf(own.max, item[k]);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) own.sum += item[k] = weight(item[k], own.max, scale);
    MaxSum all = block_reduce(own, merge, MaxSum{-infinity(), 0.0f});
    if (parts > 1) all = merge_parts(all, states + row * parts, part, parts, merge);
    const float factor = norm(own.max, all, scale);
    store_items<ITEMS, WIDTH>(y + begin, count, item, [=](int, Group<WIDTH> v) { return scaled(v, factor); });
}

// Rows of any length, one block each: once through for maximum and sum, once more to write. Two reads and one write.
extern "C" __global__ void __launch_bounds__(1024) softmax_two_reads(const float* x, float* y, int cols,
                                                                     float temperature) {
    const float* const from = x + static_cast<long long>(blockIdx.x) * cols;
    float* const to = y + static_cast<long long>(blockIdx.x) * cols;
    const float scale = 1.0f / temperature;
    const MergeMaxSum merge = {scale};
    MaxSum own = {-infinity(), 0.0f};
    for (int begin = 0; begin < cols; begin += 8 * blockDim.x) {
        float item[8];
        load_items<8, 1>(from + begin, cols - begin, -infinity(), item);
        MaxSum next = {-infinity(), 0.0f};
#pragma unroll
        for (int k = 0; k < 8; ++k) next.max = fmaxf(next.max, item[k]);
#pragma unroll
        for (int k = 0; k < 8; ++k) next.sum += weight(item[k], next.max, scale);
        own = merge(own, next);
    }
    const MaxSum row = block_reduce(own, merge, MaxSum{-infinity(), 0.0f});
    const float factor = 1.0f / row.sum;
#pragma unroll 8
    for (int c = threadIdx.x; c < cols; c += blockDim.x) to[c] = factor * weight(from[c], row.max, scale);
}
