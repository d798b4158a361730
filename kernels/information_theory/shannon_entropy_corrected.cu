#include "entropy/count_logs.cuh"
#include "entropy/logarithms.cuh"
#include "entropy/quick_logs.cuh"
#include "sums/row_sums.cuh"

// Of one row's counts: the sum of c ln c, their sum, and how many bins are occupied. All of it in double precision:
// ln N - (sum of c ln c) / N cancels where one bin holds nearly everything, to 1e-16 ln N of absolute error. With
// TABLE logarithms are looked up.
template <bool TABLE>
struct Tally {
    double logs = 0.0;
    long long samples = 0;
    int occupied = 0;

    template <class Count>
    __device__ static double log_of(Count c, const double* table) {
        return TABLE ? x_log_x(c, table) : x_log_x(static_cast<double>(c));
    }

    template <class Count>
    __device__ void add(Count c, const double* table) {
        logs += log_of(c, table);
        samples += c;
        occupied += c != 0;
    }

    __device__ void finish(float* entropy, const double* table, double* by_block, unsigned int* arrived,
                           double unit) const {
        double sum[3] = {logs, static_cast<double>(samples), static_cast<double>(occupied)};
        if (!row_sums(sum, by_block, arrived)) return;
        const double n = sum[1];
        const double likely = (log_of(static_cast<long long>(n), table) - sum[0]) / n;
        entropy[blockIdx.x] = static_cast<float>(unit * (likely + (sum[2] - 1.0) / (2.0 * n)));
    }
};

// Counts are read as floats of the same bits.
template <bool TABLE>
__global__ void __launch_bounds__(512, TABLE ? 3 : 1)
    entropy_corrected(const int* counts, float* entropy, const double* table, double* by_block, unsigned int* arrived,
                      long long cols, double unit) {
    Tally<TABLE> tally;
    const auto add = [&](const float(&x)[1], int) { tally.add(__float_as_int(x[0]), table); };
    visit_row<4>(cols, add, reinterpret_cast<const float*>(counts) + blockIdx.x * cols);
    tally.finish(entropy, table, by_block, arrived, unit);
}

template <bool TABLE>
__global__ void __launch_bounds__(512)
    entropy_corrected_i64(const long long* counts, float* entropy, const double* table, double* by_block,
                          unsigned int* arrived, long long cols, double unit) {
    Tally<TABLE> tally;
    const long long* const row = counts + blockIdx.x * cols;
    const long long pairs = cols % 2 == 0 ? cols / 2 : 0;  // rows then begin on 16-byte boundaries
    const Share whole = row_share(pairs), rest = row_share(cols - 2 * pairs);
#pragma unroll 4
    for (long long i = whole.begin + threadIdx.x; i < whole.end; i += blockDim.x) {
        const longlong2 two = __ldcs(reinterpret_cast<const longlong2*>(row) + i);
        tally.add(two.x, table);
        tally.add(two.y, table);
    }
    for (long long i = rest.begin + threadIdx.x; i < rest.end; i += blockDim.x)
        tally.add(__ldcs(row + 2 * pairs + i), table);
    tally.finish(entropy, table, by_block, arrived, unit);
}

// p log2(p); infinite for a negative p.
__device__ inline float careful_term(float p) {
    if (p > 0.0f) return p * log2_of(p);
    return p == 0.0f ? 0.0f : isnan(p) ? p : infinity();
}

// From probabilities of n samples: what lies below 1 / (2 n) is no count, so its bin is not occupied.
extern "C" __global__ void __launch_bounds__(512)
    entropy_corrected_p(const float* p, float* entropy, double* by_block, unsigned int* arrived, long long cols,
                        double samples, double unit) {
    const float least = static_cast<float>(0.5 / samples);
    const float* const row = p + blockIdx.x * cols;
    PartialSums<1> partial;
    QuickLogs logs;
    int occupied = 0;
    visit_row<4>(cols, [&](const float(&x)[1], int slot) {
        partial.add(0, slot, x[0] * logs.log2_of(x[0]));
        occupied += x[0] >= least;
    }, row);
    if (!logs.sure()) {
        partial = {};
        visit_row<1>(cols, [&](const float(&x)[1], int slot) { partial.add(0, slot, careful_term(x[0])); }, row);
    }
    double bits[1];
    partial.total(bits);
    double sum[2] = {bits[0], static_cast<double>(occupied)};
    if (row_sums(sum, by_block, arrived))
        entropy[blockIdx.x] = static_cast<float>(unit * ((sum[1] - 1.0) / (2.0 * samples) - LN_2 * sum[0]));
}
