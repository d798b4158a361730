#include "layers/half_gelu.cuh"

__global__ void half_gelu(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = GeluOfHalves{}(x[i]);
}
