#include "tensor_cores/thirds_tile.cuh"

/// Each pair of floats as three pairs of bfloat16.
__global__ void thirds(const float* x, unsigned int* large, unsigned int* middle, unsigned int* small, int pairs) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pairs) split_thirds(x[2 * i], x[2 * i + 1], large[i], middle[i], small[i]);
}
