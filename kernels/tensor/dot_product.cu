#include "sums/accumulate.cuh"
#include "sums/reduce.cuh"
#include "arrays/vector_load.cuh"

__device__ unsigned int arrived;

// result = sum of a[i] b[i]: four accumulators per thread within a tile, double precision from the tile upwards.
template <class Accumulator, class Result>
__global__ void __launch_bounds__(512, 4) dot_product(const float* a, const float* b, Result* result, double* by_block,
                                                      long long n) {
    Accumulator part[4];
    double total = 0.0;
    const auto settle = [&] {
        total += (part[0].value() + part[1].value()) + (part[2].value() + part[3].value());
        for (int slot = 0; slot < 4; ++slot) part[slot] = {};
    };
    visit_pairs<2>(a, b, n, [&](float x, float y, int slot) { part[slot].add_product(x, y); }, settle);
    settle();
    if (grid_sum(total, by_block, &arrived, &total)) *result = static_cast<Result>(total);
}
