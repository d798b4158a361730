#include "entropy/logarithms.cuh"
#include "entropy/quick_logs.cuh"
#include "sums/row_sums.cuh"

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
    visit_row_abreast<4>(cols, [&](const float(&x)[1], int slot) { partial.add(0, slot, quick(x[0])); }, row);
    if (!quick.sure()) {
        partial = PartialSums<1>();
        visit_row_abreast<4, 1>(cols, [&](const float(&x)[1], int slot) { partial.add(0, slot, term(x[0])); }, row);
    }
    double sum[1];
    partial.total(sum);
    if (row_sums(sum, by_block, arrived)) entropy[blockIdx.x] = static_cast<float>(-unit * sum[0]);
}

/// Sums of counts c and of c log2 c by the hardware's logarithm, whose error is absolute near 1. Counts that are infinite,
/// negative or NaN are remembered.
struct QuickCounts {
    PartialSums<2> sums;
    unsigned int largest = 0;

    __device__ void add(int slot, float c) {
        largest = max(largest, __float_as_uint(c));
        sums.add(0, slot, c);
        sums.add(1, slot, c * __log2f(fmaxf(c, 0x1p-126f)));
    }
};

// The sum of c log2(c / n) over a row of counts whose total n is known, times ln 2, as row_sums.
__device__ inline bool known_sums(const float* row, double n, double (&sum)[1], double* by_block, unsigned int* arrived,
                                  long long cols) {
    const float whole = static_cast<float>(n), rest = static_cast<float>(n - whole);
    PartialSums<1> partial;
    OrdinaryTerms terms;
    const auto visit = [&](auto term) {
        return [&, term](const float(&x)[1], int slot) { partial.add(0, slot, term(x[0], (x[0] - whole) - rest)); };
    };
    visit_row_abreast<4>(cols, visit([&](float x, float apart) { return terms(x, whole, BetterKnown{apart}); }), row);
    if (terms.odd) {
        partial = PartialSums<1>();
        visit_row_abreast<4, 1>(cols, visit([&](float x, float apart) { return relative_entropy(x, whole, apart); }), row);
    }
    partial.total(sum);
    return row_sums(sum, by_block, arrived);
}

/// What a row's total is where its entropy needs no second reading.
__device__ inline double needless() { return __int_as_float(0x7fc00000); }

/// The entropy of each row of counts divided by its total n: log2 n - 1 / n times the sum of c log2 c, from one reading.
/// Where it is small against what cancels, or a count is odd, thread 0 gets n, for the row is to be read again; else
/// needless(), which is the entropy too where the total is NaN.
__device__ inline double quick_entropy(const float* row, float* entropy, double* by_block, unsigned int* arrived,
                                       long long cols, double unit, bool& first) {
    QuickCounts quick;
    visit_row_abreast<4>(cols, [&](const float(&x)[1], int slot) { quick.add(slot, x[0]); }, row);
    double sums[2];
    quick.sums.total(sums);
    double all[3] = {sums[0], sums[1], quick.largest < 0x7f800000u ? 0.0 : 1.0};
    first = row_sums(all, by_block, arrived);
    if (!first) return 0.0;
    const double n = all[0], logs = all[1] / n, bits = log2(n) - logs;
    const bool sure = all[2] == 0.0 && n > 0x1p-100 && bits >= 2.0 && fabs(logs) <= bits;
    if (sure || isnan(n)) *entropy = static_cast<float>(unit * bits);
    return sure ? needless() : n;
}

extern "C" __global__ void __launch_bounds__(512, 4)
    quick_entropy_of_counts(const float* counts, float* entropy, double* total, double* by_block, unsigned int* arrived,
                            long long cols, double unit) {
    bool first;
    const double n = quick_entropy(counts + blockIdx.x * cols, entropy + blockIdx.x, by_block, arrived, cols, unit, first);
    if (first) total[blockIdx.x] = n;
}

// The same for rows that have a total yet.
extern "C" __global__ void __launch_bounds__(512)
    entropy_of_counts(const float* counts, float* entropy, const double* total, double* by_block, unsigned int* arrived,
                      long long cols, double unit) {
    const double n = total[blockIdx.x];
    double sum[1];
    if (!isnan(n) && known_sums(counts + blockIdx.x * cols, n, sum, by_block, arrived, cols))
        entropy[blockIdx.x] = static_cast<float>(-unit / LN_2 * sum[0] / n);
}

// Both by one block for each row.
extern "C" __global__ void __launch_bounds__(256)
    entropy_of_few_counts(const float* counts, float* entropy, double* by_block, unsigned int* arrived, long long cols,
                          double unit) {
    __shared__ double total;
    bool first;
    double n = quick_entropy(counts + blockIdx.x * cols, entropy + blockIdx.x, by_block, arrived, cols, unit, first);
    if (first) total = n;
    __syncthreads();
    n = total;
    double sum[1];
    if (!isnan(n) && known_sums(counts + blockIdx.x * cols, n, sum, by_block, arrived, cols))
        entropy[blockIdx.x] = static_cast<float>(-unit / LN_2 * sum[0] / n);
}
