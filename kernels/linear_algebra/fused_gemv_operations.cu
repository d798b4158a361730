#include "sums/grid_reduce.cuh"
#include "products/row_products.cuh"

// r = alpha A x + beta b and s = the reduction of r, in one launch: ROWS rows a block, or one a warp where ROWS is 0. The
// last block to finish reduces what the blocks found, in order.
template <class Op, int ROWS, int WIDTH>
__global__ void __launch_bounds__(512)
    fused_gemv_operations(const float* a, const float* x, const float* b, float* r, float* s, double* by_block,
                          unsigned int* arrived, float alpha, float beta, int rows, int cols) {
    double part[] = {Op::nothing()};
    visit_row_products<ROWS, WIDTH>(a, x, rows, cols, [&](long long row, float sum) {
        const float value = beta == 0.0f ? alpha * sum : fmaf(alpha, sum, beta * b[row]);
        r[row] = value;
        part[0] = Op::term(value);
    });
    if (grid_reduce<Op>(part, by_block, arrived)) *s = static_cast<float>(part[0]);
}
