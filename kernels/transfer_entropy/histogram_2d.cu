#include "reduce.cuh"
#include "vector_load.cuh"

// Counts over equal bins of two axes. A value's bin is floor(bins (x - lo) / (hi - lo)) in double precision, the last one
// closed; out of range it is dropped, or clamped into the edge bins. A NaN is always dropped.

constexpr int DROPPED = -1;

/// One axis. The single-precision estimate is at most bins 2^-22 off: only near a whole number must it be made sure.
template <bool CLAMP>
struct Axis {
    float lo, hi, scale, unsure;
    int bins;

    __device__ Axis(float lo, float hi, int bins)
        : lo(lo), hi(hi), scale(static_cast<float>(bins / (static_cast<double>(hi) - lo))), unsure(bins * 0x1p-22f),
          bins(bins) {}

    __device__ bool keeps(float x) const { return CLAMP ? !isnan(x) : x >= lo && x <= hi; }
    __device__ float held(float x) const { return CLAMP ? fminf(fmaxf(x, lo), hi) : x; }

    /// The bin of an x that is kept, without a conversion: 2^23 and more has no fraction. `sure` becomes false where it
    /// may be the next one; so it does for infinities.
    __device__ int likely_bin(float x, bool& sure) const {
        const float estimate = (held(x) - lo) * scale, raised = estimate + 0x1p23f;
        const float above = estimate - (raised - 0x1p23f);
        sure = sure & (fabsf(above) > unsure);
        return (__float_as_int(raised) & 0x7fffff) - (above < 0.0f);
    }
    __device__ __noinline__ int sure_bin(float x) const {
        return min(static_cast<int>(floor(bins * (static_cast<double>(held(x)) - lo) / (static_cast<double>(hi) - lo))), bins - 1);
    }
};

template <bool CLAMP>
struct Grid {
    Axis<CLAMP> across, up;

    /// The bins of four samples.
    __device__ void find(float4 u, float4 v, int (&bin)[4]) const {
        const float x[4] = {u.x, u.y, u.z, u.w}, y[4] = {v.x, v.y, v.z, v.w};
        bool sure = true;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int column = across.likely_bin(x[k], sure), row = up.likely_bin(y[k], sure);
            bin[k] = across.keeps(x[k]) && up.keeps(y[k]) ? row * across.bins + column : DROPPED;
        }
        if (sure) return;
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (across.keeps(x[k]) && up.keeps(y[k])) bin[k] = up.sure_bin(y[k]) * across.bins + across.sure_bin(x[k]);
    }
};

/// Counters of 16 bits in shared memory, two in a word. One that reaches HALF hands that much over to the result, so
/// that HALF further samples fit before the next barrier.
template <class Count>
struct Private {
    static constexpr unsigned int HALF = 0x8000;
    unsigned int* words;
    Count* result;

    __device__ void clear(int bins) const {
        for (int i = threadIdx.x; i < (bins + 1) / 2; i += blockDim.x) words[i] = 0;
    }

    __device__ void add(int bin, unsigned int amount) const {
        if (amount == 0) return;
        const int shift = bin % 2 * 16;
        const unsigned int before = atomicAdd(words + bin / 2, amount << shift) >> shift & 0xffff;
        if (before >= HALF || before + amount < HALF) return;
        atomicSub(words + bin / 2, HALF << shift);
        atomicAdd(result + bin, static_cast<Count>(HALF));
    }

    __device__ void settle() const { __syncthreads(); }

    __device__ void flush(int bins) const {
        __syncthreads();
        for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
            const unsigned int count = words[bin / 2] >> bin % 2 * 16 & 0xffff;
            if (count > 0) atomicAdd(result + bin, static_cast<Count>(count));
        }
    }
};

/// More bins than shared memory holds are counted where they are.
template <class Count>
struct Direct {
    unsigned int* words;
    Count* result;

    __device__ void clear(int) const {}
    __device__ void add(int bin, unsigned int amount) const {
        if (amount > 0) atomicAdd(result + bin, static_cast<Count>(amount));
    }
    __device__ void settle() const {}
    __device__ void flush(int) const {}
};

/// Counts N samples of each thread; where all of the warp's have the same bin, one lane counts for all.
template <int N, class Counters>
__device__ void count(const Counters& counters, const int (&bin)[N]) {
    bool alike = bin[0] == __shfl_sync(FULL_WARP, bin[0], 0);
#pragma unroll
    for (int k = 1; k < N; ++k) alike = alike & (bin[k] == bin[0]);
    if (__all_sync(FULL_WARP, alike)) {
        if (threadIdx.x % 32 == 0 && bin[0] != DROPPED) counters.add(bin[0], 32 * N);
        return;
    }
#pragma unroll
    for (int k = 0; k < N; ++k)
        if (bin[k] != DROPPED) counters.add(bin[k], 1);
}

__device__ inline float nothing() { return __int_as_float(0x7fffffff); }

// Blocks of at most 1024 threads, 32 samples of each between barriers. `histogram` is zero before. All threads of a block
// walk alike, since they meet at the barriers; they meet seldom, so that some load while others count.
template <template <class> class Counters, class Count, bool CLAMP>
__global__ void __launch_bounds__(1024)
    histogram_2d(const float* x, const float* y, Count* histogram, long long n, int columns, int rows, float x_lo,
                 float x_hi, float y_lo, float y_hi) {
    extern __shared__ unsigned int words[];
    const Counters<Count> counters = {words, histogram};
    const Grid<CLAMP> grid = {Axis<CLAMP>(x_lo, x_hi, columns), Axis<CLAMP>(y_lo, y_hi, rows)};
    counters.clear(columns * rows);
    counters.settle();
    const Span span = aligned_span(n, x, y);
    const Share share = block_share(span.vectors);
    int turn = 0;
    for (long long begin = share.begin; begin < share.end; begin += 2 * blockDim.x) {
        float4 u[2], v[2];
        int bin[2][4];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const long long at = begin + k * blockDim.x + threadIdx.x;
            u[k] = v[k] = make_float4(nothing(), nothing(), nothing(), nothing());
            if (at < share.end)
                u[k] = load4_streamed(x + span.head + 4 * at), v[k] = load4_streamed(y + span.head + 4 * at);
        }
#pragma unroll
        for (int k = 0; k < 2; ++k) grid.find(u[k], v[k], bin[k]);
#pragma unroll
        for (int k = 0; k < 2; ++k) count(counters, bin[k]);
        if (++turn % 4 == 0) counters.settle();
    }
    counters.settle();
    const Share rest = block_share(span.singles(n));
    for (long long begin = rest.begin; begin < rest.end; begin += blockDim.x) {
        const long long at = begin + threadIdx.x;
        const bool inside = at < rest.end;
        float4 u = make_float4(nothing(), nothing(), nothing(), nothing()), v = u;
        if (inside) u.x = x[span.single(at)], v.x = y[span.single(at)];
        int bin[4];
        grid.find(u, v, bin);
        const int one[1] = {bin[0]};
        count(counters, one);
        counters.settle();
    }
    counters.flush(columns * rows);
}

// More bins than shared memory holds, and many samples: bins go in turn to 2^bits groups, whose counters it does hold.
// First each tile of samples is sorted by group into `keys` (the bin's place in its group), `starts` saying where each
// group begins; then blocks count one group each.

constexpr int SORTERS = 512, PER_THREAD = 16, SORTED = SORTERS * PER_THREAD, MOST_GROUPS = 256;

/// Four neighbours of an array of n floats; what is beyond it is nothing.
__device__ inline float4 four_at(const float* from, long long at, long long n) {
    const auto one = [&](long long i) { return i < n ? from[i] : nothing(); };
    return make_float4(one(at), one(at + 1), one(at + 2), one(at + 3));
}

/// Each warp's counts of its samples by group become where in the tile they begin; `starts` gets where groups do.
__device__ inline void begin_groups(unsigned int (*counts)[MOST_GROUPS], unsigned int* totals, int groups,
                                    unsigned int* starts) {
    __syncthreads();
    for (int g = threadIdx.x; g < groups; g += SORTERS) {
        totals[g] = 0;
        for (int w = 0; w < SORTERS / 32; ++w) totals[g] += counts[w][g];
    }
    __syncthreads();
    for (int g = threadIdx.x; g <= groups; g += SORTERS) {
        unsigned int begin = 0;
        for (int before = 0; before < g; ++before) begin += totals[before];
        starts[g] = begin;
        for (int w = 0; w < SORTERS / 32 && g < groups; ++w) {
            const unsigned int own = counts[w][g];
            counts[w][g] = begin;
            begin += own;
        }
    }
    __syncthreads();
}

template <bool CLAMP>
__global__ void __launch_bounds__(SORTERS)
    histogram_sort(const float* x, const float* y, unsigned short* keys, unsigned int* starts, long long n, int columns,
                   int rows, float x_lo, float x_hi, float y_lo, float y_hi, int bits) {
    __shared__ unsigned int counts[SORTERS / 32][MOST_GROUPS], totals[MOST_GROUPS];
    __shared__ __align__(16) unsigned short sorted[SORTED];
    const Grid<CLAMP> grid = {Axis<CLAMP>(x_lo, x_hi, columns), Axis<CLAMP>(y_lo, y_hi, rows)};
    const int groups = 1 << bits, warp = threadIdx.x / 32;
    const bool aligned = misalignment(x) == 0 && misalignment(y) == 0;
    const long long first = static_cast<long long>(blockIdx.x) * SORTED;
    for (int i = threadIdx.x; i < SORTERS / 32 * MOST_GROUPS; i += SORTERS) counts[i / MOST_GROUPS][i % MOST_GROUPS] = 0;
    __syncthreads();
    int bin[PER_THREAD / 4][4];
    unsigned int rank[PER_THREAD / 4][4];
    const bool whole = aligned && first + SORTED <= n;
#pragma unroll
    for (int k = 0; k < PER_THREAD / 4; k += 2) {
        const long long at = first + 4 * (k * SORTERS + static_cast<int>(threadIdx.x)), next = at + 4 * SORTERS;
        float4 u[2], v[2];
        if (whole) {  // all four on their way before the first is needed
            u[0] = load4_streamed(x + at), u[1] = load4_streamed(x + next);
            v[0] = load4_streamed(y + at), v[1] = load4_streamed(y + next);
        } else {
            u[0] = four_at(x, at, n), u[1] = four_at(x, next, n), v[0] = four_at(y, at, n), v[1] = four_at(y, next, n);
        }
        grid.find(u[0], v[0], bin[k]);
        grid.find(u[1], v[1], bin[k + 1]);
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD / 4; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (bin[k][j] != DROPPED) rank[k][j] = atomicAdd(&counts[warp][bin[k][j] & (groups - 1)], 1u);
    unsigned int* const own_starts = starts + static_cast<long long>(blockIdx.x) * (groups + 1);
    begin_groups(counts, totals, groups, own_starts);
#pragma unroll
    for (int k = 0; k < PER_THREAD / 4; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (bin[k][j] != DROPPED)
                sorted[counts[warp][bin[k][j] & (groups - 1)] + rank[k][j]] = static_cast<unsigned short>(bin[k][j] >> bits);
    const unsigned int kept = own_starts[groups], last = kept + threadIdx.x;
    if (threadIdx.x < 8 && last < SORTED) sorted[last] = 0;  // keys are written eight at a time
    __syncthreads();
    for (unsigned int i = threadIdx.x; 8 * i < kept; i += SORTERS)
        reinterpret_cast<uint4*>(keys + first)[i] = reinterpret_cast<const uint4*>(sorted)[i];
}

template <class Count>
__global__ void __launch_bounds__(1024)
    histogram_groups(const unsigned short* keys, const unsigned int* starts, Count* histogram, int tiles, int bins, int bits) {
    extern __shared__ unsigned int words[];
    const int groups = 1 << bits, group = blockIdx.x % groups, part = blockIdx.x / groups, parts = gridDim.x / groups;
    const int held = (bins + groups - 1) >> bits, warps = blockDim.x / 32;
    for (int i = threadIdx.x; i < held; i += blockDim.x) words[i] = 0;
    __syncthreads();
    for (int tile = part * warps + threadIdx.x / 32; tile < tiles; tile += parts * warps) {
        const unsigned int* const own = starts + static_cast<long long>(tile) * (groups + 1) + group;
        const unsigned short* const from = keys + static_cast<long long>(tile) * SORTED;
#pragma unroll 4
        for (unsigned int i = own[0] + threadIdx.x % 32; i < own[1]; i += 32) atomicAdd(words + from[i], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < held; i += blockDim.x)
        if (words[i] > 0) atomicAdd(histogram + (i << bits) + group, static_cast<Count>(words[i]));
}
