#include "count_logs.cuh"
#include "logarithms.cuh"
#include "quick_logs.cuh"
#include "row_sums.cuh"

// Of one row's counts: the sum of c ln c, their sum, and how many bins are occupied. All of it in double precision:
// ln N - (sum of c ln c) / N cancels where one bin holds nearly everything, to 1e-16 ln N of absolute error.
struct Tally {
    double logs = 0.0;
    long long samples = 0;
    int occupied = 0;

    template <class Count>
    __device__ void add(Count c, const double* table) {
        logs += x_log_x(c, table);
        samples += c;
        occupied += c != 0;
    }

    __device__ void finish(float* entropy, const double* table, double* by_block, unsigned int* arrived,
                           double unit) const {
        double sum[3] = {logs, static_cast<double>(samples), static_cast<double>(occupied)};
        if (!row_sums(sum, by_block, arrived)) return;
        const double n = sum[1];
        const double likely = (x_log_x(static_cast<long long>(n), table) - sum[0]) / n;
        entropy[blockIdx.x] = static_cast<float>(unit * (likely + (sum[2] - 1.0) / (2.0 * n)));
    }
};

/// The same of counts below 1024, without a branch; `beyond` is 0 if all were. 32 bits hold a thread's samples.
template <class Count>
struct SmallTally {
    double logs[2] = {};
    Count beyond = 0;
    unsigned int samples = 0;
    int occupied = 0;

    __device__ void add(Count c, int slot, const double* table) {
        constexpr Count LAST = TABULATED - 1;
        beyond |= c & ~LAST;
        logs[slot % 2] += __ldg(table + (c & LAST));
        samples += static_cast<unsigned int>(c);
        occupied += c != 0;
    }
};

/// f(count, slot) for the counts of this block's share of a row. They are read as floats of the same bits.
template <int UNROLL, class F>
__device__ void visit_counts(const int* row, long long cols, F f) {
    const auto visit = [&](const float(&x)[1], int slot) { f(__float_as_int(x[0]), slot); };
    visit_row<UNROLL>(cols, visit, reinterpret_cast<const float*>(row));
}

template <int UNROLL, class F>
__device__ void visit_counts(const long long* row, long long cols, F f) {
    const long long pairs = cols % 2 == 0 ? cols / 2 : 0;  // rows then begin on 16-byte boundaries
    const auto pair = [&](long long at) { return __ldcs(reinterpret_cast<const longlong2*>(row) + at); };
    const auto many = [&](long long at) {
        longlong2 two[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) two[k] = pair(at + k * blockDim.x);
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) f(two[k].x, 0), f(two[k].y, 1);
    };
    walk<UNROLL>(row_share(pairs), many, [&](long long at) {
        const longlong2 two = pair(at);
        f(two.x, 0), f(two.y, 1);
    });
    const Share rest = row_share(cols - 2 * pairs);
    for (long long i = rest.begin + threadIdx.x; i < rest.end; i += blockDim.x) f(__ldcs(row + 2 * pairs + i), 0);
}

template <class Count>
__device__ __noinline__ Tally tally_with_care(const Count* row, long long cols, const double* table) {
    Tally tally;
    visit_counts<1>(row, cols, [&](Count c, int) { tally.add(c, table); });
    return tally;
}

template <class Count>
__device__ Tally tally_of(const Count* row, long long cols, const double* table) {
    SmallTally<Count> small;
    visit_counts<4>(row, cols, [&](Count c, int slot) { small.add(c, slot, table); });
    if (small.beyond != 0) return tally_with_care(row, cols, table);
    return {small.logs[0] + small.logs[1], small.samples, small.occupied};
}

extern "C" __global__ void __launch_bounds__(512, 3)
    entropy_corrected(const int* counts, float* entropy, const double* table, double* by_block, unsigned int* arrived,
                      long long cols, double unit) {
    tally_of(counts + blockIdx.x * cols, cols, table).finish(entropy, table, by_block, arrived, unit);
}

extern "C" __global__ void __launch_bounds__(512, 3)
    entropy_corrected_i64(const long long* counts, float* entropy, const double* table, double* by_block,
                          unsigned int* arrived, long long cols, double unit) {
    tally_of(counts + blockIdx.x * cols, cols, table).finish(entropy, table, by_block, arrived, unit);
}

// p log2(p); infinite for a negative p.
__device__ inline float careful_term(float p) {
    if (p > 0.0f) return p * log2_of(p);
    return p == 0.0f ? 0.0f : isnan(p) ? p : infinity();
}

// From probabilities of n samples: what lies below 1 / (2 n) is no count, so its bin is not occupied.
extern "C" __global__ void __launch_bounds__(512, 4)
    entropy_corrected_p(const float* p, float* entropy, double* by_block, unsigned int* arrived, long long cols,
                        double samples, double unit) {
    const float least = static_cast<float>(0.5 / samples);
    const float* const row = p + blockIdx.x * cols;
    PartialSums<1> partial;
    QuickLogs logs;
    int occupied = 0;
    visit_row<8>(cols, [&](const float(&x)[1], int slot) {
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
