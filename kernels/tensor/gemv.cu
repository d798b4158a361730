#pragma once

#include "launch_overlap.cuh"
#include "row_dots.cuh"

/// alpha sum + beta y; y is not read where beta is 0.
template <class T>
__device__ void blend(T* y, T sum, T alpha, T beta) {
    *y = beta == 0 ? alpha * sum : fma(alpha, sum, beta * *y);
}

// y = alpha A x + beta y: ROWS rows a block.
template <class T, int ROWS, int WIDTH>
__global__ void __launch_bounds__(512)
    gemv(const T* a, const T* x, T* y, T* parts, T alpha, T beta, int rows, int cols, int splits) {
    const long long first = static_cast<long long>(blockIdx.x) * ROWS;
    T sum[ROWS][1] = {};
    add_row_dots<WIDTH>(a + first * cols, static_cast<long long>(cols), rows - first, static_cast<int>(threadIdx.x),
                        static_cast<int>(blockDim.x), cols, {x}, sum);
    block_totals(sum);
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (threadIdx.x == r && first + r < rows) blend(y + first + r, sum[r][0], alpha, beta);
}

// Rows too short for a block: one warp each.
template <class T, int WIDTH>
__global__ void __launch_bounds__(256)
    gemv_short(const T* a, const T* x, T* y, T* parts, T alpha, T beta, int rows, int cols, int splits) {
    const long long row = grid_thread() / 32;
    if (row >= rows) return;
    T sum[1][1] = {};
    add_row_dots<WIDTH>(a + row * cols, static_cast<long long>(cols), 1, static_cast<int>(threadIdx.x % 32), 32, cols,
                        {x}, sum);
    const T total = warp_reduce(sum[0][0], Sum{});
    if (threadIdx.x % 32 == 0) blend(y + row, total, alpha, beta);
}

// y = alpha A^T x + beta y: a warp owns 32 WIDTH columns and walks every 8th row of the block's split; the warps add up
// in shared memory. Several splits leave their sums in `parts` for gemv_combine.
template <class T, int WIDTH>
__global__ void __launch_bounds__(256)
    gemv_transposed(const T* a, const T* x, T* y, T* parts, T alpha, T beta, int rows, int cols, int splits) {
    constexpr int COLS = 32 * WIDTH, WARPS = 8;
    let_next_begin();
    __shared__ T by_warp[WARPS][COLS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int split = blockIdx.x % splits, block = blockIdx.x / splits * COLS, col = block + lane * WIDTH;
    const int share = (rows + splits - 1) / splits, end = min(rows, (split + 1) * share);
    T sum[WIDTH] = {};
    if (col < cols) {
#pragma unroll 8
        for (int row = split * share + warp; row < end; row += WARPS) {
            Chunk<T, WIDTH> chunk;
            chunk.load(a + static_cast<long long>(row) * cols + col, true);
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) sum[k] = fma(chunk.value[k], x[row], sum[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) by_warp[warp][lane * WIDTH + k] = sum[k];
    __syncthreads();
    for (int c = threadIdx.x; c < COLS && block + c < cols; c += blockDim.x) {
        T total = 0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) total += by_warp[w][c];
        if (splits > 1) parts[static_cast<long long>(split) * cols + block + c] = total;
        else blend(y + block + c, total, alpha, beta);
    }
}

// Adds the splits in order.
template <class T>
__global__ void __launch_bounds__(256)
    gemv_combine(const T* a, const T* x, T* y, T* parts, T alpha, T beta, int rows, int cols, int splits) {
    const int col = static_cast<int>(grid_thread());
    await_last_launch();
    if (col >= cols) return;
    T total = 0;
#pragma unroll 8
    for (int s = 0; s < splits; ++s) total += parts[static_cast<long long>(s) * cols + col];
    blend(y + col, total, alpha, beta);
}
