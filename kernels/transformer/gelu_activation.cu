#include "vector_load.cuh"

// x times the probability of staying below x, from `tail`, the probability of exceeding |x|: that keeps the relative
// accuracy on the negative side. Beyond 20 the tail is 0 in float, so -inf gives -0; NaN passes through `tail`.
__device__ inline float gate(float x, float tail) {
    const float lost = fminf(fabsf(x), 20.0f) * tail;
    return x > 0.0f ? x - lost : copysignf(lost, x);
}

struct Gelu {
    __device__ float operator()(float x) const { return gate(x, 0.5f * erfcf(0.70710678f * fabsf(x))); }
};

// The tanh form: (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
__device__ inline float twice_u(float size) { return size * fmaf(0.07135481627f, size * size, 1.59576912161f); }

struct GeluTanh {
    __device__ float operator()(float x) const { return gate(x, 1.0f / (1.0f + expf(twice_u(fabsf(x))))); }
};

// The tanh form with the hardware's exponential and division.
struct GeluFast {
    __device__ float operator()(float x) const {
        return gate(x, __fdividef(1.0f, 1.0f + __expf(twice_u(fabsf(x)))));
    }
};

extern "C" __global__ void gelu(const float* x, float* y, long long n) { map_elements(x, y, n, Gelu{}); }

extern "C" __global__ void gelu_tanh(const float* x, float* y, long long n) { map_elements(x, y, n, GeluTanh{}); }

extern "C" __global__ void gelu_fast(const float* x, float* y, long long n) { map_elements(x, y, n, GeluFast{}); }
