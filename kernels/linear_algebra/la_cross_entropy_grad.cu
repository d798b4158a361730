#include "arrays/columns.cuh"

// gradient[r, c] = (p[r, c] - (c == label[r])) / rows; a row whose label is no column is NaN. The grid is as for map_columns.
template <int WIDTH, int ROWS>
__global__ void __launch_bounds__(256)
    la_cross_entropy_grad(const float* p, const int* label, float* gradient, long long rows, int cols, float weight) {
    const int column = first_column<WIDTH>();
    if (column >= cols) return;
    const long long row = static_cast<long long>(rows_block()) * ROWS * blockDim.y + threadIdx.y;
    Group<WIDTH> v[ROWS];
    load_rows(p, row, rows, cols, column, v);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const long long at = row + r * blockDim.y;
        if (at >= rows) return;
        const int right = __ldg(label + at);
        const bool known = right >= 0 && right < cols;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            const float error = column + k == right ? v[r].at[k] - 1.0f : v[r].at[k];
            v[r].at[k] = known ? error * weight : __int_as_float(0x7fffffff);
        }
        store_group(gradient + at * cols + column, v[r]);
    }
}
