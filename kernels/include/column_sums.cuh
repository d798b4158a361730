#pragma once

#include "map_arrays.cuh"

/// Columns that a block of 256 threads has: 32 packets.
template <class T>
constexpr int BLOCK_COLUMNS = 32 * Packet<T>::WIDTH;

/// total = sum of matrix[row, column] weight(row) over all rows, for the column of this thread; blockIdx.x / splits is the
/// block's tile of columns, `splits` blocks share its rows. Each warp walks every 8th row of the block's share. True in
/// the last block of a tile to finish, which adds what the others left in `parts` in order; `arrived` (one per tile) is
/// as in last_block. The threads behind the tile's columns have no sum.
template <class T, class Weight>
__device__ bool column_sums(const T* matrix, Weight weight, T* parts, unsigned int* arrived, int rows, int cols,
                            int splits, T* total) {
    constexpr int WIDTH = Packet<T>::WIDTH, COLS = BLOCK_COLUMNS<T>, WARPS = 8, CHUNK = 32 * WARPS;
    __shared__ T by_warp[WARPS][COLS], weights[CHUNK];  // each row's weight is asked for once
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int split = blockIdx.x % splits, tile = blockIdx.x / splits, col = tile * COLS + lane * WIDTH;
    const int share = (rows + splits - 1) / splits, end = min(rows, (split + 1) * share);
    const bool whole = cols % WIDTH == 0;
    T sum[WIDTH] = {};
    for (int first = split * share; first < end; first += CHUNK) {
        const int rows_here = min(CHUNK, end - first);
        if (first > split * share) __syncthreads();
        if (threadIdx.x < rows_here) weights[threadIdx.x] = weight(first + threadIdx.x);
        __syncthreads();
        const T* const from = matrix + static_cast<long long>(first) * cols + col;
        if (whole && col < cols) {
#pragma unroll 4
            for (int row = warp; row < rows_here; row += WARPS) {
                const auto v = Packet<T>::load(from + static_cast<long long>(row) * cols, 0);
#pragma unroll
                for (int k = 0; k < WIDTH; ++k) sum[k] = fma(v.at[k], weights[row], sum[k]);
            }
        } else {
            for (int row = warp; row < rows_here; row += WARPS)
#pragma unroll
                for (int k = 0; k < WIDTH; ++k)
                    if (col + k < cols) sum[k] = fma(from[static_cast<long long>(row) * cols + k], weights[row], sum[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) by_warp[warp][lane * WIDTH + k] = sum[k];
    __syncthreads();
    const int column = tile * COLS + threadIdx.x;
    const bool mine = threadIdx.x < COLS && column < cols;
    *total = 0;
    if (mine)
#pragma unroll
        for (int w = 0; w < WARPS; ++w) *total += by_warp[w][threadIdx.x];
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
