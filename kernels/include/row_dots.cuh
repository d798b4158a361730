#pragma once

#include "reduce.cuh"
#include "vector_load.cuh"

// Products of a few rows of a matrix with one or two vectors by one block: the matrix is streamed once from memory, the
// vectors come from the caches and are used for all the rows. ROWS rows, VECTORS vectors, WIDTH elements a load.

template <class T, int WIDTH>
struct Chunk {
    T value[WIDTH];

    /// Streamed loads are for data that is used once.
    __device__ void load(const T* from, bool streamed) {
        if constexpr (WIDTH == 1) {
            value[0] = streamed ? __ldcs(from) : *from;
        } else {
            static_assert(WIDTH * sizeof(T) % 16 == 0);
            float4* const to = reinterpret_cast<float4*>(value);
#pragma unroll
            for (int k = 0; k < static_cast<int>(WIDTH * sizeof(T) / 16); ++k)
                to[k] = streamed ? __ldcs(reinterpret_cast<const float4*>(from) + k)
                                 : reinterpret_cast<const float4*>(from)[k];
        }
    }
};

/// Adds this thread's share of row r times vector v to sum[r][v]: elements `first`, `first + threads` and so on, times
/// WIDTH. Rows beyond `rows` repeat the last one.
template <int WIDTH, class T, int ROWS, int VECTORS>
__device__ void add_row_dots(const T* matrix, long long length, long long rows, int first, int threads, int cols,
                             const T* const (&vectors)[VECTORS], T (&sum)[ROWS][VECTORS]) {
    const T* row[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) row[r] = matrix + (r < rows ? r : rows - 1) * length;
#pragma unroll 2
    for (int at = first * WIDTH; at < cols; at += threads * WIDTH) {
        Chunk<T, WIDTH> a[ROWS], x[VECTORS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) a[r].load(row[r] + at, true);
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) x[v].load(vectors[v] + at, false);
#pragma unroll
        for (int k = 0; k < WIDTH; ++k)
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int v = 0; v < VECTORS; ++v) sum[r][v] = fma(a[r].value[k], x[v].value[k], sum[r][v]);
    }
}

/// The block's totals of sum[r][v], in every thread, in a fixed order.
template <class T, int ROWS, int VECTORS>
__device__ void block_totals(T (&sum)[ROWS][VECTORS]) {
    __shared__ T by_warp[ROWS * VECTORS][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
#pragma unroll
    for (int k = 0; k < ROWS * VECTORS; ++k) {
        T& value = sum[k / VECTORS][k % VECTORS];
        value = warp_reduce(value, Sum{});
        if (lane == 0) by_warp[k][warp] = value;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ROWS * VECTORS; ++k)
        sum[k / VECTORS][k % VECTORS] = warp_reduce(lane < warps ? by_warp[k][lane] : T(0), Sum{});
    __syncthreads();
}
