#include "entropy/logarithms.cuh"
#include "entropy/quick_logs.cuh"
#include "sums/row_sums.cuh"

__device__ unsigned int arrived;

// WIDTH neighbouring floats; WIDTH is 4 where rows begin on 16-byte boundaries, else 1.
template <int WIDTH>
struct Cells {
    float value[WIDTH];

    __device__ explicit Cells(const float* at) {
        if constexpr (WIDTH == 4) {
            const float4 v = load4_streamed(at);
            value[0] = v.x, value[1] = v.y, value[2] = v.z, value[3] = v.w;
        } else {
            value[0] = __ldcs(at);
        }
    }
};

// Sums of p log2(p / marginal). A cell is nearly always much smaller than its marginal: then the logarithm of their
// quotient is quick. Where one is not, or where a quotient may be below what the quick logarithm knows, the thread does
// its cells again.
template <int WIDTH>
struct QuickTerms {
    PartialSums<1> partial;
    QuickLogs logs;

    __device__ float prepared(float marginal) const { return __fdividef(1.0f, marginal); }
    __device__ void add(const Cells<WIDTH>& joint, const float (&reciprocal)[WIDTH]) {
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            const float p = joint.value[j], quotient = p * reciprocal[j];
            const bool lost = quotient < 0x1p-126f && p != 0.0f;
            partial.add(0, j, p * logs.log2_of(lost ? 1.0f : quotient));  // 1 is not sure either
        }
    }
    __device__ bool sure() const { return logs.sure(); }
};

template <int WIDTH>
struct CarefulTerms {
    PartialSums<1> partial;

    __device__ float prepared(float marginal) const { return marginal; }
    __device__ void add(const Cells<WIDTH>& joint, const float (&marginal)[WIDTH]) {
#pragma unroll
        for (int j = 0; j < WIDTH; ++j)
            partial.add(0, j, static_cast<float>(1.0 / LN_2) * relative_entropy(joint.value[j], marginal[j]));
    }
};

// -unit ln 2 times the sum of what walk(terms) adds, by the whole grid; `doubtful` ones are taken with care at once.
template <int WIDTH, class Walk>
__device__ void sum_terms(Walk walk, bool doubtful, float* entropy, double* by_block, double unit) {
    double sum[1];
    QuickTerms<WIDTH> quick;
    if (!doubtful) walk(quick);
    quick.partial.total(sum);
    if (doubtful || !quick.sure()) {
        CarefulTerms<WIDTH> careful;
        walk(careful);
        careful.partial.total(sum);
    }
    if (grid_sum(sum[0], by_block, &arrived, sum)) *entropy = static_cast<float>(-unit * LN_2 * sum[0]);
}

// Over joint[ys][cells]. A thread keeps the marginals of WIDTH cells and walks some of their ys, several loads ahead.
template <int WIDTH>
__global__ void __launch_bounds__(256) y_first(const float* joint, const float* marginal, float* entropy,
                                               double* by_block, int ys, long long cells, double unit) {
    constexpr int AHEAD = 8;
    const int across = max(1, static_cast<int>((cells / WIDTH + blockDim.x - 1) / blockDim.x)), down = gridDim.x / across;
    const long long at = (static_cast<long long>(blockIdx.x % across) * blockDim.x + threadIdx.x) * WIDTH;
    const int height = ((ys + down - 1) / down + AHEAD - 1) / AHEAD * AHEAD;
    const int begin = blockIdx.x / across * height, end = min(ys, begin + height);
    const auto walk = [&](auto& terms) {
        if (at >= cells || begin >= end) return;
        Cells<WIDTH> below(marginal + at);
        bool prepared = false;  // once the first cells are on their way too
        const auto prepare = [&] {
#pragma unroll
            for (int j = 0; j < WIDTH && !prepared; ++j) below.value[j] = terms.prepared(below.value[j]);
            prepared = true;
        };
        const float* from = joint + begin * cells + at;
        int y = begin;
        for (; y + AHEAD <= end; y += AHEAD, from += AHEAD * cells) {
            const Cells<WIDTH> ahead[] = {Cells<WIDTH>(from), Cells<WIDTH>(from + cells), Cells<WIDTH>(from + 2 * cells),
                                          Cells<WIDTH>(from + 3 * cells), Cells<WIDTH>(from + 4 * cells),
                                          Cells<WIDTH>(from + 5 * cells), Cells<WIDTH>(from + 6 * cells),
                                          Cells<WIDTH>(from + 7 * cells)};
            prepare();
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) terms.add(ahead[k], below.value);
        }
        if (y == end) return;
        const int last = end - 1 - y;  // the rest at once: rows behind the end are the last one, which is not added again
        const auto row = [&](int k) { return Cells<WIDTH>(from + min(k, last) * cells); };
        const Cells<WIDTH> rest[] = {row(0), row(1), row(2), row(3), row(4), row(5), row(6)};
        prepare();
#pragma unroll
        for (int k = 0; k < AHEAD - 1; ++k)
            if (k <= last) terms.add(rest[k], below.value);
    };
    sum_terms<WIDTH>(walk, ys <= 8, entropy, by_block, unit);  // a cell of few is seldom far below its marginal
}

// The same over joint[cells][ys]: a warp takes neighbouring rows side by side, as many loads ahead.
template <int WIDTH>
__global__ void __launch_bounds__(256) y_last(const float* joint, const float* marginal, float* entropy,
                                              double* by_block, int ys, long long cells, double unit) {
    constexpr int AHEAD = 8;
    const long long warps = grid_threads() / 32, whole = cells / AHEAD, row = ys;
    const int first = threadIdx.x % 32 * WIDTH;
    const auto walk = [&](auto& terms) {
        const auto add = [&](const Cells<WIDTH>& cells, float below) {
            float same[WIDTH];
            for (int j = 0; j < WIDTH; ++j) same[j] = below;
            terms.add(cells, same);
        };
        for (long long group = grid_thread() / 32; group < whole; group += warps) {
            float below[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) below[k] = __ldg(marginal + group * AHEAD + k);
            bool prepared = false;  // once the first cells are on their way too
            const float* from = joint + group * AHEAD * row + first;
            for (int y = first; y < ys; y += 32 * WIDTH, from += 32 * WIDTH) {
                const Cells<WIDTH> ahead[] = {Cells<WIDTH>(from), Cells<WIDTH>(from + row),
                                              Cells<WIDTH>(from + 2 * row), Cells<WIDTH>(from + 3 * row),
                                              Cells<WIDTH>(from + 4 * row), Cells<WIDTH>(from + 5 * row),
                                              Cells<WIDTH>(from + 6 * row), Cells<WIDTH>(from + 7 * row)};
#pragma unroll
                for (int k = 0; k < AHEAD && !prepared; ++k) below[k] = terms.prepared(below[k]);
                prepared = true;
#pragma unroll
                for (int k = 0; k < AHEAD; ++k) add(ahead[k], below[k]);
            }
        }
        for (long long cell = whole * AHEAD + grid_thread() / 32; cell < cells; cell += warps) {
            const float below = terms.prepared(__ldg(marginal + cell));
            for (int y = first; y < ys; y += 32 * WIDTH) add(Cells<WIDTH>(joint + cell * row + y), below);
        }
    };
    sum_terms<WIDTH>(walk, false, entropy, by_block, unit);
}
