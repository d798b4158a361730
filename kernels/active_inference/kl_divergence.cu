#include "entropy/logarithms.cuh"
#include "sums/row_sums.cuh"

// A NaN is not clipped.
__device__ inline float at_least(float x, float low) { return x < low ? low : x; }

// divergence[r] = sum of q ln(q / p) over row r; with CLIPPED, q and p are raised to `low` first.
// A thread that meets odd terms takes all of its terms anew.
template <bool CLIPPED>
__global__ void __launch_bounds__(512) kl_divergence(const float* q, const float* p, float* divergence, double* by_block,
                                                     unsigned int* arrived, long long cols, float low) {
    const long long row = blockIdx.x * cols;
    PartialSums<1> partial;
    OrdinaryTerms terms;
    const auto visit = [&](auto term) {
        return [&, term](const float(&x)[2], int slot) {
            partial.add(0, slot, CLIPPED ? term(at_least(x[0], low), at_least(x[1], low)) : term(x[0], x[1]));
        };
    };
    visit_row<4>(cols, visit([&](float from, float to) { return terms(from, to); }), q + row, p + row);
    if (terms.odd) {
        partial = PartialSums<1>();
        visit_row<1>(cols, visit([](float from, float to) { return relative_entropy(from, to); }), q + row, p + row);
    }
    double sum[1];
    partial.total(sum);
    if (row_sums(sum, by_block, arrived)) divergence[blockIdx.x] = static_cast<float>(sum[0]);
}
