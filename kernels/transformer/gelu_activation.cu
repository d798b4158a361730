#include "layers/activations.cuh"
#include "arrays/vector_load.cuh"

struct GeluErfc {
    __device__ float operator()(float x) const { return gate(x, 0.5f * erfcf(0.70710678f * clipped(x))); }
};

// The tanh form with the hardware's exponential and division.
struct GeluFast {
    __device__ float operator()(float x) const {
        return gate(x, __fdividef(1.0f, 1.0f + __expf(twice_u(fabsf(x)))));
    }
};

extern "C" __global__ void gelu(const float* x, float* y, long long n) { map_elements(x, y, n, Gelu{}); }

extern "C" __global__ void gelu_erfc(const float* x, float* y, long long n) { map_elements(x, y, n, GeluErfc{}); }

extern "C" __global__ void gelu_tanh(const float* x, float* y, long long n) { map_elements(x, y, n, GeluTanh{}); }

extern "C" __global__ void gelu_fast(const float* x, float* y, long long n) { map_elements(x, y, n, GeluFast{}); }
