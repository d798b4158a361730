#include "arrays/columns.cuh"

template <int WIDTH>
struct AddBias {
    Group<WIDTH> bias;

    __device__ float operator()(float x, int k) const { return x + bias.at[k]; }
};

template <int WIDTH, int ROWS>
__device__ void add_bias(const float* x, const float* bias, float* y, long long rows, int cols) {
    map_columns<WIDTH, ROWS>(x, y, rows, cols, [&](int c) { return AddBias<WIDTH>{load_group<WIDTH>(bias + c)}; });
}

// y[r, c] = x[r, c] + bias[c]. WIDTH is 4 where rows are whole groups of four, else 1; a thread has ROWS rows.
template <int WIDTH, int ROWS>
__global__ void broadcast_add(const float* x, const float* bias, float* y, long long rows, int cols) {
    add_bias<WIDTH, ROWS>(x, bias, y, rows, cols);
}

template <int WIDTH, int ROWS>
__global__ void broadcast_add_in_place(float* x, const float* bias, long long rows, int cols) {
    add_bias<WIDTH, ROWS>(x, bias, x, rows, cols);
}
