#pragma once

#include "arrays/map_arrays.cuh"

/// Columns that a block of 256 threads has, where LANES threads side by side have a packet each.
template <class T, int LANES = 32>
constexpr int BLOCK_COLUMNS = LANES * Packet<T>::WIDTH;

/// total = sum of matrix[row, column] weight(row) over all rows, for the column of this thread; block / splits is the tile
/// of columns, `splits` blocks share its rows. LANES threads side by side walk a row, 256 / LANES rows at a time: few lanes
/// make tiles narrow, so that a small matrix has blocks enough without a split. True in the last block of a tile to finish,
/// which adds what the others left in `parts` in order; `arrived` (one per tile) is as in last_block. The threads behind
/// the tile's columns have no sum.
template <int LANES = 32, class T, class Weight>
__device__ bool column_sums(const T* matrix, Weight weight, T* parts, unsigned int* arrived, int rows, int cols,
                            int splits, T* total, int block = blockIdx.x) {
    constexpr int WIDTH = Packet<T>::WIDTH, COLS = BLOCK_COLUMNS<T, LANES>, WALKERS = 256 / LANES, CHUNK = 256, AHEAD = 8;
    __shared__ T by_walker[WALKERS][COLS], weights[CHUNK];  // each row's weight is asked for once
    const int lane = threadIdx.x % LANES, walker = threadIdx.x / LANES;
    const int split = block % splits, tile = block / splits, col = tile * COLS + lane * WIDTH;
    const int share = (rows + splits - 1) / splits, end = min(rows, (split + 1) * share);
    const bool packed = cols % WIDTH == 0 && col < cols;
    T sum[WIDTH] = {};
    for (int first = split * share; first < end; first += CHUNK) {
        const int rows_here = min(CHUNK, end - first);
        const T* const from = matrix + static_cast<long long>(first) * cols + col;
        const auto load = [=](int row) { return Packet<T>::load_streamed(from + static_cast<long long>(row) * cols, 0); };
        Packet<T> ahead[AHEAD] = {};  // under way while the weights are asked for
        if (packed)
#pragma unroll
            for (int a = 0; a < AHEAD; ++a)
                if (walker + a * WALKERS < rows_here) ahead[a] = load(walker + a * WALKERS);
        if (first > split * share) __syncthreads();
        if (threadIdx.x < rows_here) weights[threadIdx.x] = weight(first + threadIdx.x);
        __syncthreads();
        const auto add = [&](const Packet<T>& v, int row) {
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) sum[k] = fma(v.at[k], weights[row], sum[k]);
        };
        if (packed) {
#pragma unroll
            for (int a = 0; a < AHEAD; ++a)
                if (walker + a * WALKERS < rows_here) add(ahead[a], walker + a * WALKERS);
#pragma unroll 8
            for (int row = walker + AHEAD * WALKERS; row < rows_here; row += WALKERS) add(load(row), row);
        } else if (cols % WIDTH != 0) {
            for (int row = walker; row < rows_here; row += WALKERS)
#pragma unroll
                for (int k = 0; k < WIDTH; ++k)
                    if (col + k < cols) sum[k] = fma(from[static_cast<long long>(row) * cols + k], weights[row], sum[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) by_walker[walker][lane * WIDTH + k] = sum[k];
    __syncthreads();
    const int column = tile * COLS + threadIdx.x;
    const bool mine = threadIdx.x < COLS && column < cols;
    *total = 0;
    if (mine)
#pragma unroll
        for (int w = 0; w < WALKERS; ++w) *total += by_walker[w][threadIdx.x];
    if (splits == 1) return true;
    if (mine) parts[static_cast<long long>(split) * cols + column] = *total;
    __syncthreads();  // the block's parts stand before thread 0 tells of them
    if (!last_block(arrived + tile, splits)) return false;
    *total = 0;
    if (mine)
#pragma unroll 8
        for (int s = 0; s < splits; ++s) *total += __ldcg(parts + static_cast<long long>(s) * cols + column);
    return true;
}
