#pragma once

#include "launches/launch_overlap.cuh"
#include "products/row_dots.cuh"

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
__global__ void __launch_bounds__(256, 2)
    gemv_short(const T* a, const T* x, T* y, T* parts, T alpha, T beta, int rows, int cols, int splits) {
    const long long row = grid_thread() / 32;
    if (row >= rows) return;
    const T total = warp_row_dot<WIDTH>(a + row * cols, x, cols);
    if (threadIdx.x % 32 == 0) blend(y + row, total, alpha, beta);
}

// y = alpha A^T x + beta y: a block owns 64 WIDTH columns and walks four rows abreast through its split of them, 16 loads of
// y = alpha A^T x + beta y: a block owns 64 WIDTH columns and walks four rows abreast through its split of them, 16 loads of
// floats of a thread on their way, or 8 of doubles; the rows add up in shared memory. Blocks of one split run side by side,
// so that they read whole rows. Several splits leave their sums in `parts` for gemv_combine.
template <class T, int WIDTH>
__global__ void __launch_bounds__(256, 2)
    gemv_transposed(const T* a, const T* x, T* y, T* parts, T alpha, T beta, int rows, int cols, int splits) {
    constexpr int ACROSS = 64, COLS = ACROSS * WIDTH, ABREAST = 4, AHEAD = 64 / sizeof(T);
    let_next_begin();
    __shared__ T by_row[ABREAST][COLS];
    const int place = threadIdx.x % ACROSS * WIDTH, block = blockIdx.x * COLS, split = blockIdx.y;
    const int share = (rows + splits - 1) / splits, end = min(rows, (split + 1) * share);
    const T* const from = a + block + place;
    T sum[WIDTH] = {};
    const auto add = [&](int first, auto there) {  // rows beyond the end repeat the last one
        Chunk<T, WIDTH> chunk[AHEAD];
        T weight[AHEAD];
        const auto row = [&](int u) { return there(u) ? first + u * ABREAST : end - 1; };
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) chunk[u].load(from + static_cast<long long>(row(u)) * cols, true);
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) weight[u] = x[row(u)];
#pragma unroll
        for (int u = 0; u < AHEAD; ++u)
#pragma unroll
            for (int k = 0; k < WIDTH; ++k)
                if (there(u)) sum[k] = fma(chunk[u].value[k], weight[u], sum[k]);
    };
    if (block + place < cols) {
        int row = split * share + threadIdx.x / ACROSS;
#pragma unroll 1
        for (; row + (AHEAD - 1) * ABREAST < end; row += AHEAD * ABREAST) add(row, Whole{});
        if (row < end) add(row, [=](int u) { return row + u * ABREAST < end; });
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) by_row[threadIdx.x / ACROSS][place + k] = sum[k];
    __syncthreads();
    for (int c = threadIdx.x; c < COLS && block + c < cols; c += blockDim.x) {
        T total = 0;
#pragma unroll
        for (int r = 0; r < ABREAST; ++r) total += by_row[r][c];
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
