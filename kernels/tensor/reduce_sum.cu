#include "sums/accumulate.cuh"
#include "sums/grid_reduce.cuh"
#include "arrays/vector_load.cuh"

__device__ unsigned int arrived;

// result = sum of x[i] in one launch: four accumulators per thread within a tile, double precision from the tile upwards.
template <class Accumulator, class Result>
__global__ void __launch_bounds__(512, 4) reduce_sum(const float* x, Result* result, double* by_block, long long n) {
    Accumulator part[4];
    double total = 0.0;
    const auto settle = [&] {
        total += (part[0].value() + part[1].value()) + (part[2].value() + part[3].value());
        for (int slot = 0; slot < 4; ++slot) part[slot] = {};
    };
    visit_elements<4>(x, n, [&](float value, int slot) { part[slot].add(value); }, settle);
    settle();
    if (grid_sum(total, by_block, &arrived, &total)) *result = static_cast<Result>(total);
}

// A sum of squares, each fused into it.
struct Squares : Plain<float> {
    __device__ void add(float x) { add_product(x, x); }
};

// result = the largest x[i]; a NaN wins, and of no element it is -inf.
extern "C" __global__ void __launch_bounds__(512, 4) reduce_largest(const float* x, float* result, double* by_block,
                                                                    long long n) {
    float part[4] = {-infinity(), -infinity(), -infinity(), -infinity()};
    visit_elements<4>(x, n, [&](float value, int slot) {
        part[slot] = value > part[slot] || isnan(value) ? value : part[slot];
    });
    double largest[] = {LargestOf{}(LargestOf{}(part[0], part[1]), LargestOf{}(part[2], part[3]))};
    if (grid_reduce<LargestOf>(largest, by_block, &arrived)) *result = static_cast<float>(largest[0]);
}

// result[r] = sum of x[r, :], one block per row.
extern "C" __global__ void reduce_rows(const float* x, float* result, int cols) {
    float part[4] = {};
    visit_by_block<2>(x + static_cast<long long>(blockIdx.x) * cols, cols,
                      [&](float value, int slot) { part[slot] += value; });
    const double total = block_sum((static_cast<double>(part[0]) + part[1]) + (static_cast<double>(part[2]) + part[3]));
    if (threadIdx.x == 0) result[blockIdx.x] = static_cast<float>(total);
}
