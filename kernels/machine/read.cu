#include "sums/reduce.cuh"
#include "arrays/vector_load.cuh"

__device__ unsigned int arrived;

// total = sum of x: reads all, writes next to nothing.
extern "C" __global__ void __launch_bounds__(512) read_all(const float* x, float* total, double* by_block, long long n) {
    float part[4] = {};
    visit_shares<8>(x, n, [&](float value, int slot) { part[slot] += value; });
    double sum = static_cast<double>(part[0] + part[1]) + static_cast<double>(part[2] + part[3]);
    if (grid_sum(sum, by_block, &arrived, &sum)) *total = static_cast<float>(sum);
}

// The same with all blocks side by side through the array, a step of the whole grid at a time. n is a multiple of 4.
extern "C" __global__ void __launch_bounds__(256) read_abreast(const float* x, float* total, double* by_block,
                                                               long long n) {
    constexpr int UNROLL = 4;
    const long long vectors = n / 4, step = static_cast<long long>(gridDim.x) * blockDim.x;
    float part[4] = {};
    for (long long at = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; at < vectors; at += UNROLL * step) {
        float4 v[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            v[k] = at + k * step < vectors ? load4_streamed(x + 4 * (at + k * step)) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) part[0] += v[k].x, part[1] += v[k].y, part[2] += v[k].z, part[3] += v[k].w;
    }
    double sum = static_cast<double>(part[0] + part[1]) + static_cast<double>(part[2] + part[3]);
    if (grid_sum(sum, by_block, &arrived, &sum)) *total = static_cast<float>(sum);
}
