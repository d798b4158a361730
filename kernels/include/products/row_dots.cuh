#pragma once

#include "sums/reduce.cuh"
#include "arrays/vector_load.cuh"

// Products of a few rows of a matrix with one or two vectors by one block: the matrix is streamed once from memory, the
// vectors come from the caches and are used for all the rows. ROWS rows, VECTORS vectors, WIDTH elements a load.

/// 16 bytes of numbers.
template <class T>
struct Packets { using type = float4; };
template <>
struct Packets<double> { using type = double2; };

template <class T, int WIDTH>
struct Chunk {
    using Packet = typename Packets<T>::type;
    T value[WIDTH];

    /// Streamed loads are for data that is used once.
    __device__ void load(const T* from, bool streamed) {
        if constexpr (WIDTH == 1) {
            value[0] = streamed ? __ldcs(from) : *from;
        } else {
            static_assert(WIDTH * sizeof(T) % 16 == 0);
            Packet* const to = reinterpret_cast<Packet*>(value);
#pragma unroll
            for (int k = 0; k < static_cast<int>(WIDTH * sizeof(T) / 16); ++k)
                to[k] = streamed ? __ldcs(reinterpret_cast<const Packet*>(from) + k)
                                 : reinterpret_cast<const Packet*>(from)[k];
        }
    }
};

/// Adds COUNT chunks of every row, `apart` elements from each other, times those of the vectors; all are on their way
/// before the first is used.
template <int COUNT, int WIDTH, class T, int ROWS, int VECTORS>
__device__ void add_chunks(const T* const (&row)[ROWS], const T* const (&vectors)[VECTORS], int at, int apart,
                           T (&sum)[ROWS][VECTORS]) {
    Chunk<T, WIDTH> a[COUNT][ROWS], x[COUNT][VECTORS];
#pragma unroll
    for (int c = 0; c < COUNT; ++c)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) a[c][r].load(row[r] + at + c * apart, true);
#pragma unroll
    for (int c = 0; c < COUNT; ++c)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) x[c][v].load(vectors[v] + at + c * apart, false);
#pragma unroll
    for (int c = 0; c < COUNT; ++c)
#pragma unroll
        for (int k = 0; k < WIDTH; ++k)
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int v = 0; v < VECTORS; ++v) sum[r][v] = fma(a[c][r].value[k], x[c][v].value[k], sum[r][v]);
}

/// Adds this thread's share of row r times vector v to sum[r][v]: elements `first`, `first + threads` and so on, times
/// WIDTH. Rows beyond `rows` repeat the last one.
template <int WIDTH, class T, int ROWS, int VECTORS>
__device__ void add_row_dots(const T* matrix, long long length, long long rows, int first, int threads, int cols,
                             const T* const (&vectors)[VECTORS], T (&sum)[ROWS][VECTORS]) {
    const T* row[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) row[r] = matrix + (r < rows ? r : rows - 1) * length;
    const int apart = threads * WIDTH;
    int at = first * WIDTH;
#pragma unroll 1
    for (; at < cols - apart; at += 2 * apart) add_chunks<2, WIDTH>(row, vectors, at, apart, sum);
    if (at < cols) add_chunks<1, WIDTH>(row, vectors, at, apart, sum);
}

/// The product of a short row with a vector by a warp, in every lane: up to eight loads of each on their way at a time, if
/// the kernel's bounds leave it registers for them.
template <int WIDTH, class T>
__device__ T warp_row_dot(const T* row, const T* vector, int cols) {
    constexpr int AHEAD = 8;
    T sum = 0;
#pragma unroll 1
    for (int base = 0; base < cols; base += AHEAD * 32 * WIDTH) {
        const int at = base + static_cast<int>(threadIdx.x % 32) * WIDTH;
        const auto place = [&](int c) { return at + c * 32 * WIDTH < cols ? at + c * 32 * WIDTH : 0; };
        Chunk<T, WIDTH> a[AHEAD], x[AHEAD];
#pragma unroll
        for (int c = 0; c < AHEAD; ++c) a[c].load(row + place(c), true);
#pragma unroll
        for (int c = 0; c < AHEAD; ++c) x[c].load(vector + place(c), false);
#pragma unroll
        for (int c = 0; c < AHEAD; ++c)
#pragma unroll
            for (int k = 0; k < WIDTH; ++k)
                if (at + c * 32 * WIDTH < cols) sum = fma(a[c].value[k], x[c].value[k], sum);
    }
    return warp_reduce(sum, Sum{});
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
