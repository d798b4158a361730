#include "arrays/vector_load.cuh"

// y = x, one kept 16-byte load and one store per thread.
extern "C" __global__ void copy(const float* x, float* y, long long n) {
    map_elements(x, y, n, [](float value) { return value; });
}

// The same with four streamed loads in flight before the first store. n is a multiple of 4 and both are aligned.
extern "C" __global__ void copy_streamed(const float* x, float* y, long long n) {
    const long long first = 4 * (4LL * blockIdx.x * blockDim.x + threadIdx.x);
    float4 v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (first + 4 * k * blockDim.x < n) v[k] = load4_streamed(x + first + 4 * k * blockDim.x);
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (first + 4 * k * blockDim.x < n) store4_streamed(y + first + 4 * k * blockDim.x, v[k]);
}
