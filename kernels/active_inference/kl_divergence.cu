#include "logarithms.cuh"
#include "row_sums.cuh"

// A NaN is not clipped.
__device__ inline float at_least(float x, float low) { return x < low ? low : x; }

// divergence[r] = sum of q ln(q / p) over row r; with CLIPPED, q and p are raised to `low` first.
template <bool CLIPPED>
__global__ void __launch_bounds__(512) kl_divergence(const float* q, const float* p, float* divergence, double* by_block,
                                                     unsigned int* arrived, long long cols, float low) {
    const long long row = blockIdx.x * cols;
    PartialSums<1> partial;
    const auto term = [&](const float(&x)[2], int slot) {
        const float from = CLIPPED ? at_least(x[0], low) : x[0], to = CLIPPED ? at_least(x[1], low) : x[1];
        partial.add(0, slot, relative_entropy(from, to));
    };
    visit_row<4>(cols, term, q + row, p + row);
    double sum[1];
    partial.total(sum);
    if (row_sums(sum, by_block, arrived)) divergence[blockIdx.x] = static_cast<float>(sum[0]);
}
