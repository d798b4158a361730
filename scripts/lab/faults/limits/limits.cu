// y = 2 x of 256 numbers. FAULT takes the launch that a GPU refuses, or the kernel that such a launch does not fit.

#include <cooperative_groups.h>

__device__ void write(const float* x, float* y, int n) {
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const int i = block * blockDim.x * blockDim.y * blockDim.z + thread;
    if (i < n) y[i] = 2.0f * x[i];
}

// In the launches of these alone is the fault: grids, blocks and shared memory beyond the device.
extern "C" __global__ void doubled(const float* x, float* y, int n) { write(x, y, n); }

template <bool FAULT>
__global__ void __launch_bounds__(FAULT ? 64 : 128) launch_bounds(const float* x, float* y, int n) {
    write(x, y, n);
}

template <bool FAULT>
__global__ void static_shared(const float* x, float* y, int n) {
    __shared__ float tile[FAULT ? 60000 : 12000];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x ^ 1] = 2.0f * tile[threadIdx.x ^ 1];
}

// Each number is kept in a register of its own until the weight, which is 0, is known.
template <bool FAULT>
__global__ void registers(const float* x, float* y, int n) {
    constexpr int KEPT = FAULT ? 96 : 8;
    __shared__ float weight;
    float kept[KEPT];
#pragma unroll
    for (int k = 0; k < KEPT; ++k) kept[k] = x[(threadIdx.x + k) % n];
    if (threadIdx.x == 0) weight = n == 256 ? 0.0f : 1.0f;
    __syncthreads();
    float total = 0.0f;
#pragma unroll
    for (int k = KEPT - 1; k >= 0; --k) total = total * weight + kept[k];
    if (threadIdx.x < n) y[threadIdx.x] = 2.0f * total;
}

template <bool FAULT>
__global__ void __cluster_dims__(FAULT ? 16 : 8, 1, 1) cluster_size(const float* x, float* y, int n) {
    write(x, y, n);
}

// Its dynamic shared memory lets a multiprocessor hold a single block.
extern "C" __global__ void resident(const float* x, float* y, int n) {
    cooperative_groups::this_grid().sync();
    write(x, y, n);
}
