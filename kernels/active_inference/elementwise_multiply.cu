#include "arrays/vector_load.cuh"

__device__ inline float multiply(float a, float b) { return a * b; }

extern "C" __global__ void elementwise_multiply(const float* a, const float* b, float* c, long long n) {
    map_pairs(a, b, c, n, multiply);
}

// a *= b.
extern "C" __global__ void elementwise_multiply_in_place(float* a, const float* b, long long n) {
    map_pairs(a, b, a, n, multiply);
}

// b = a * b.
extern "C" __global__ void elementwise_multiply_into_second(const float* a, float* b, long long n) {
    map_pairs(a, b, b, n, multiply);
}
