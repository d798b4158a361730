#include "arrays/vector_load.cuh"

__device__ inline float add(float a, float b) { return a + b; }

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, long long n) {
    map_pairs(a, b, c, n, add);
}

// a += b.
extern "C" __global__ void vector_add_in_place(float* a, const float* b, long long n) { map_pairs(a, b, a, n, add); }

// Arrays that begin inside others: a and c at `offset`, b at `other`.
extern "C" __global__ void vector_add_views(const float* a, const float* b, float* c, long long n, int offset,
                                            int other) {
    map_pairs(a + offset, b + other, c + offset, n, add);
}
