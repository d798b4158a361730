#include "vector_load.cuh"

// 1 / (1 + exp(-x)) for x >= 0 and exp(x) / (1 + exp(x)) below: the exponential never overflows, and the negative tail
// keeps its relative accuracy. NaN stays NaN.
struct Sigmoid {
    __device__ float operator()(float x) const {
        const float t = expf(-fabsf(x));
        return (x < 0.0f ? t : 1.0f) / (1.0f + t);
    }
};

// The same with the hardware's exponential and division.
struct SigmoidFast {
    __device__ float operator()(float x) const {
        const float t = __expf(-fabsf(x));
        return __fdividef(x < 0.0f ? t : 1.0f, 1.0f + t);
    }
};

extern "C" __global__ void sigmoid(const float* x, float* y, long long n) { map_elements(x, y, n, Sigmoid{}); }

extern "C" __global__ void sigmoid_in_place(float* x, long long n) { map_elements(x, x, n, Sigmoid{}); }

extern "C" __global__ void sigmoid_fast(const float* x, float* y, long long n) { map_elements(x, y, n, SigmoidFast{}); }
