#include "reduce.cuh"
#include "vector_load.cuh"

// Counts over equal bins of two axes. A value's bin is floor(bins (x - lo) / (hi - lo)) in double precision, the last one
// closed; out of range it is dropped, or clamped into the edge bins. A NaN is always dropped.

constexpr int DROPPED = -1;

/// One axis. The single-precision estimate is at most bins 2^-22 off: only near a whole number must it be made sure.
struct Axis {
    float lo, hi, scale, unsure;
    int bins;

    __device__ Axis(float lo, float hi, int bins)
        : lo(lo), hi(hi), scale(static_cast<float>(bins / (static_cast<double>(hi) - lo))), unsure(bins * 0x1p-22f),
          bins(bins) {}

    template <bool CLAMP>
    __device__ int bin_of(float x) const {
        if (CLAMP && !isnan(x)) x = fminf(fmaxf(x, lo), hi);
        if (!(x >= lo && x <= hi)) return DROPPED;
        const float estimate = (x - lo) * scale;
        float bin = floorf(estimate);
        if (fabsf(estimate - rintf(estimate)) <= unsure || !isfinite(estimate))
            bin = static_cast<float>(floor(bins * (static_cast<double>(x) - lo) / (static_cast<double>(hi) - lo)));
        return min(static_cast<int>(bin), bins - 1);
    }
};

template <bool CLAMP>
struct Grid {
    Axis across, up;

    __device__ int bin_of(float x, float y) const {
        const int column = across.bin_of<CLAMP>(x), row = up.bin_of<CLAMP>(y);
        return column == DROPPED || row == DROPPED ? DROPPED : row * across.bins + column;
    }
};

/// How much this thread counts for `bin`: where the whole warp has the same bin, one lane counts for all.
__device__ inline unsigned int share_of(int bin) {
    const int first = __shfl_sync(FULL_WARP, bin, 0);
    if (!__all_sync(FULL_WARP, bin == first)) return bin == DROPPED ? 0 : 1;
    return threadIdx.x % 32 == 0 && bin != DROPPED ? 32 : 0;
}

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

// Blocks of at most 1024 threads, 8 samples of each between barriers. `histogram` is zero before. All threads of a block
// walk alike, since they meet at the barriers.
template <template <class> class Counters, class Count, bool CLAMP>
__global__ void __launch_bounds__(1024)
    histogram_2d(const float* x, const float* y, Count* histogram, long long n, int columns, int rows, float x_lo,
                 float x_hi, float y_lo, float y_hi) {
    extern __shared__ unsigned int words[];
    const Counters<Count> counters = {words, histogram};
    const Grid<CLAMP> grid = {Axis(x_lo, x_hi, columns), Axis(y_lo, y_hi, rows)};
    counters.clear(columns * rows);
    counters.settle();
    const auto count = [&](float u, float v) {
        const int bin = grid.bin_of(u, v);
        counters.add(bin, share_of(bin));
    };
    const float none = __int_as_float(0x7fffffff);
    const Span span = aligned_span(n, x, y);
    const Share share = block_share(span.vectors);
    for (long long begin = share.begin; begin < share.end; begin += 2 * blockDim.x) {
        float4 u[2], v[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const long long at = begin + k * blockDim.x + threadIdx.x;
            u[k] = v[k] = make_float4(none, none, none, none);
            if (at < share.end)
                u[k] = load4_streamed(x + span.head + 4 * at), v[k] = load4_streamed(y + span.head + 4 * at);
        }
#pragma unroll
        for (int k = 0; k < 2; ++k)
            count(u[k].x, v[k].x), count(u[k].y, v[k].y), count(u[k].z, v[k].z), count(u[k].w, v[k].w);
        counters.settle();
    }
    const Share rest = block_share(span.singles(n));
    for (long long begin = rest.begin; begin < rest.end; begin += blockDim.x) {
        const long long at = begin + threadIdx.x;
        const bool inside = at < rest.end;
        count(inside ? x[span.single(at)] : none, inside ? y[span.single(at)] : none);
        counters.settle();
    }
    counters.flush(columns * rows);
}
