#include "logarithms.cuh"
#include "quick_logs.cuh"
#include "row_sums.cuh"

// p log2 p as the hardware's logarithm gives it; 0 for p = 0, infinite for p < 0.
__device__ inline float term(float p) {
    if (p > 0.0f) return p * log2_of(p);
    return p == 0.0f ? 0.0f : isnan(p) ? p : infinity();
}

/// Quick terms of shares up to 1/2; where one is larger, negative, subnormal or NaN, they have to be taken again.
struct QuickTerms {
    QuickLogs logs;
    unsigned int smallest = ~0u;

    __device__ float operator()(float p) {
        smallest = min(smallest, __float_as_uint(p) - 1);  // a zero is the largest
        return p * logs.log2_of(p);
    }
    __device__ bool sure() const { return logs.sure() && smallest >= 0x007fffffu; }
};

// entropy[r] = -unit times the sum of p log2 p over row r.
extern "C" __global__ void __launch_bounds__(512, 4) shannon_entropy(const float* p, float* entropy, double* by_block,
                                                                  unsigned int* arrived, long long cols, double unit) {
    const float* const row = p + blockIdx.x * cols;
    PartialSums<1> partial;
    QuickTerms quick;
    visit_row<8>(cols, [&](const float(&x)[1], int slot) { partial.add(0, slot, quick(x[0])); }, row);
    if (!quick.sure()) {
        partial = PartialSums<1>();
        visit_row<1>(cols, [&](const float(&x)[1], int slot) { partial.add(0, slot, term(x[0])); }, row);
    }
    double sum[1];
    partial.total(sum);
    if (row_sums(sum, by_block, arrived)) entropy[blockIdx.x] = static_cast<float>(-unit * sum[0]);
}

extern "C" __global__ void __launch_bounds__(512) row_totals(const float* counts, double* total, double* by_block,
                                                             unsigned int* arrived, long long cols) {
    PartialSums<1> partial;
    visit_row<8>(cols, [&](const float(&x)[1], int slot) { partial.add(0, slot, x[0]); }, counts + blockIdx.x * cols);
    double sum[1];
    partial.total(sum);
    if (row_sums(sum, by_block, arrived)) total[blockIdx.x] = sum[0];
}

// The entropy of each row of counts divided by its total: -unit / total times the sum of c log2(c / total).
extern "C" __global__ void __launch_bounds__(512)
    entropy_of_counts(const float* counts, float* entropy, const double* total, double* by_block, unsigned int* arrived,
                      long long cols, double unit) {
    const float whole = static_cast<float>(total[blockIdx.x]), rest = static_cast<float>(total[blockIdx.x] - whole);
    PartialSums<1> partial;
    OrdinaryTerms terms;
    const auto visit = [&](auto term) {
        return [&, term](const float(&x)[1], int slot) { partial.add(0, slot, term(x[0], (x[0] - whole) - rest)); };
    };
    const float* const row = counts + blockIdx.x * cols;
    visit_row<8>(cols, visit([&](float x, float apart) { return terms(x, whole, BetterKnown{apart}); }), row);
    if (terms.odd) {
        partial = PartialSums<1>();
        visit_row<1>(cols, visit([&](float x, float apart) { return relative_entropy(x, whole, apart); }), row);
    }
    double sum[1];
    partial.total(sum);
    if (row_sums(sum, by_block, arrived))
        entropy[blockIdx.x] = static_cast<float>(-unit / LN_2 * sum[0] / total[blockIdx.x]);
}
