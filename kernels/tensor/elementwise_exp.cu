#include "arrays/vector_load.cuh"

struct Exp {
    __device__ float operator()(float x) const { return expf(x); }
};

struct ExpFast {
    __device__ float operator()(float x) const { return __expf(x); }
};

extern "C" __global__ void elementwise_exp(const float* x, float* y, long long n) { map_elements(x, y, n, Exp{}); }

extern "C" __global__ void elementwise_exp_in_place(float* x, long long n) { map_elements(x, x, n, Exp{}); }

extern "C" __global__ void elementwise_exp_fast(const float* x, float* y, long long n) {
    map_elements(x, y, n, ExpFast{});
}
