#include "columns.cuh"

// gradient[r, c] = (p[r, c] - (c == label[r])) / rows; a row whose label is no column is NaN. The grid is as for map_columns.
template <int WIDTH, int ROWS>
__global__ void __launch_bounds__(256)
    la_cross_entropy_grad(const float* p, const int* label, float* gradient, long long rows, int cols, float weight) {
    const int column = first_column<WIDTH>();
    if (column >= cols) return;
    long long row = static_cast<long long>(blockIdx.x) * ROWS * blockDim.y + threadIdx.y;
#pragma unroll
    for (int r = 0; r < ROWS; ++r, row += blockDim.y) {
        if (row >= rows) return;
        const int right = label[row];
        const bool known = right >= 0 && right < cols;
        Group<WIDTH> v = load_group<WIDTH>(p + row * cols + column);
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            const float error = column + k == right ? v.at[k] - 1.0f : v.at[k];
            v.at[k] = known ? error * weight : __int_as_float(0x7fffffff);
        }
        store_group(gradient + row * cols + column, v);
    }
}
