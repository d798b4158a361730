#include "layers/activations.cuh"
#include "arrays/vector_load.cuh"

// NaN gives 0 too.
struct ReluZeroingNan {
    __device__ float operator()(float x) const { return x > 0.0f ? x : 0.0f; }
};

template <class F>
__global__ void relu(const float* x, float* y, long long n) {
    map_elements(x, y, n, F{});
}

template <class F>
__global__ void relu_in_place(float* x, long long n) {
    map_elements(x, x, n, F{});
}

// The same results as bits.
template <class F>
__global__ void relu_bits(const float* x, unsigned int* y, long long n) {
    map_elements(x, reinterpret_cast<float*>(y), n, F{});
}
