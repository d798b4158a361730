#pragma once

#include "products/row_dots.cuh"

/// Calls finish(row, product of that row with x) once for every row of a matrix, in one thread of the row's block: ROWS
/// rows a block, or one a warp where ROWS is 0.
template <int ROWS, int WIDTH, class Finish>
__device__ void visit_row_products(const float* a, const float* x, int rows, int cols, Finish finish) {
    if constexpr (ROWS == 0) {
        const long long row = static_cast<long long>(blockIdx.x) * 8 + threadIdx.x / 32;
        if (row >= rows) return;
        const float total = warp_row_dot<WIDTH>(a + row * cols, x, cols);
        if (threadIdx.x % 32 == 0) finish(row, total);
    } else {
        const long long first = static_cast<long long>(blockIdx.x) * ROWS;
        float sum[ROWS][1] = {};
        add_row_dots<WIDTH>(a + first * cols, static_cast<long long>(cols), rows - first, static_cast<int>(threadIdx.x),
                            static_cast<int>(blockDim.x), cols, {x}, sum);
        block_totals(sum);
#pragma unroll
        for (int k = 0; k < ROWS; ++k)
            if (threadIdx.x == k && first + k < rows) finish(first + k, sum[k][0]);
    }
}
