#include "row_dots.cuh"

// What the results of a product are reduced with: `term` of one, `merge` of two.
struct SumOf {
    __device__ static double nothing() { return 0.0; }
    __device__ static double term(double r) { return r; }
    __device__ double operator()(double a, double b) const { return a + b; }
};
struct SquaresOf {
    __device__ static double nothing() { return 0.0; }
    __device__ static double term(double r) { return r * r; }
    __device__ double operator()(double a, double b) const { return a + b; }
};
struct LargestOf {  // a NaN wins
    __device__ static double nothing() { return -static_cast<double>(infinity()); }
    __device__ static double term(double r) { return r; }
    __device__ double operator()(double a, double b) const { return a > b || isnan(a) ? a : b; }
};

// r = alpha A x + beta b and s = the reduction of r, in one launch: ROWS rows a block, or one a warp where ROWS is 0. The
// last block to finish reduces what the blocks found, in order.
template <class Op, int ROWS, int WIDTH>
__global__ void __launch_bounds__(256)
    fused_gemv_operations(const float* a, const float* x, const float* b, float* r, float* s, double* by_block,
                          unsigned int* arrived, float alpha, float beta, int rows, int cols) {
    const auto finish = [=](long long row, float sum) {
        const float value = beta == 0.0f ? alpha * sum : fmaf(alpha, sum, beta * b[row]);
        r[row] = value;
        return Op::term(value);
    };
    double part = Op::nothing();
    if constexpr (ROWS == 0) {
        const long long row = static_cast<long long>(blockIdx.x) * 8 + threadIdx.x / 32;
        float sum[1][1] = {};
        if (row < rows) {
            add_row_dots<WIDTH>(a + row * cols, static_cast<long long>(cols), 1, static_cast<int>(threadIdx.x % 32), 32, cols,
                                {x}, sum);
            const float total = warp_reduce(sum[0][0], Sum{});
            if (threadIdx.x % 32 == 0) part = finish(row, total);
        }
    } else {
        const long long first = static_cast<long long>(blockIdx.x) * ROWS;
        float sum[ROWS][1] = {};
        add_row_dots<WIDTH>(a + first * cols, static_cast<long long>(cols), rows - first, static_cast<int>(threadIdx.x),
                            static_cast<int>(blockDim.x), cols, {x}, sum);
        block_totals(sum);
#pragma unroll
        for (int k = 0; k < ROWS; ++k)
            if (threadIdx.x == k && first + k < rows) part = finish(first + k, sum[k][0]);
    }
    part = block_reduce(part, Op{}, Op::nothing());
    if (threadIdx.x == 0) by_block[blockIdx.x] = part;
    if (!last_block(arrived)) return;
    part = Op::nothing();
    for (unsigned int i = threadIdx.x; i < gridDim.x; i += blockDim.x) part = Op{}(part, __ldcg(by_block + i));
    part = block_reduce(part, Op{}, Op::nothing());
    if (threadIdx.x == 0) *s = static_cast<float>(part);
}
