// Written by `prism-bench fuse` from fused_gemv_operations.py: change that and run it again.
#include "sums/grid_reduce.cuh"
#include "products/row_products.cuh"

// Stages: dots, r, s.
template <class Op, int ROWS, int WIDTH>
__global__ void __launch_bounds__(512)
    fused_gemv_operations_generated(const float* a, const float* x, const float* b, float* r, float* s,
                                    double* by_block, unsigned int* arrived, float alpha, float beta, int rows,
                                    int cols) {
    double part[] = {Op::nothing()};
    visit_row_products<ROWS, WIDTH>(a, x, rows, cols, [&](long long row, float dots) {
        const float b_at = b[row];
        const float r_at = alpha * dots + beta * b_at;
        r[row] = r_at;
        part[0] = Op{}(part[0], Op::term(r_at));
    });
    if (!grid_reduce<Op>(part, by_block, arrived)) return;
    const double s_all = part[0];
    *s = static_cast<float>(s_all);
}
