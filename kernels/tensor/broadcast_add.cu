#include "columns.cuh"

template <int WIDTH>
struct AddBias {
    Group<WIDTH> bias;

    __device__ float operator()(float x, int k) const { return x + bias.at[k]; }
};

template <int WIDTH>
__device__ void add_bias(const float* x, const float* bias, float* y, long long rows, int cols) {
    map_columns<WIDTH, 4>(x, y, rows, cols, [&](int c) { return AddBias<WIDTH>{load_group<WIDTH>(bias + c)}; });
}

// y[r, c] = x[r, c] + bias[c]. WIDTH is 4 where rows are whole groups of four, else 1.
template <int WIDTH>
__global__ void broadcast_add(const float* x, const float* bias, float* y, long long rows, int cols) {
    add_bias<WIDTH>(x, bias, y, rows, cols);
}

template <int WIDTH>
__global__ void broadcast_add_in_place(float* x, const float* bias, long long rows, int cols) {
    add_bias<WIDTH>(x, bias, x, rows, cols);
}
