#include "launches/virtual_grid.cuh"

// Work to see the queue by: of two kernels one reads what other blocks have written in the other.
extern "C" __global__ void twice(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

extern "C" __global__ void add_turned(const float* y, float* z, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] += y[n - 1 - i];
}
