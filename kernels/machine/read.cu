#include "reduce.cuh"
#include "vector_load.cuh"

__device__ unsigned int arrived;

// total = sum of x: reads all, writes next to nothing.
extern "C" __global__ void __launch_bounds__(512) read_all(const float* x, float* total, double* by_block, long long n) {
    float part[4] = {};
    visit_elements<8>(x, n, [&](float value, int slot) { part[slot] += value; });
    double sum = static_cast<double>(part[0] + part[1]) + static_cast<double>(part[2] + part[3]);
    if (grid_sum(sum, by_block, &arrived, &sum)) *total = static_cast<float>(sum);
}
