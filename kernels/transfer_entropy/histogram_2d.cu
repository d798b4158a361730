#include "entropy/histogram_groups.cuh"
#include "sums/reduce.cuh"
#include "entropy/sample_bins.cuh"

// Counts of samples over equal bins of two axes.

constexpr int CROWDED = 4, EMPTY = 7;  // turns of 8192 samples that surely fit before counters are looked at again

/// Counters of 16 bits in shared memory, two in a word. `settle` hands over what is above HALF, so that HALF further
/// samples fit before the next time, and more where few are counted yet. Of more than `few` blocks each leaves its
/// counters in `parts`, to be added up afterwards.
template <class Count>
struct Private {
    static constexpr unsigned int HALF = 0x8000, EIGHTH = 0x2000;
    unsigned int* words;
    Count* result;
    unsigned int *parts, *counted;
    int few;

    __device__ void clear(int bins) const {
        for (int i = threadIdx.x; i < fours(bins); i += blockDim.x)
            reinterpret_cast<uint4*>(words)[i] = make_uint4(0, 0, 0, 0);
        __syncthreads();
    }
    __device__ static int fours(int bins) { return (bins + 7) / 8; }

    __device__ void add(int bin, unsigned int amount) const {
        const unsigned int place = bin;  // a signed one is halved and its rest taken in three times as many instructions
        atomicAdd(words + (place >> 1), __funnelshift_l(amount, amount, place << 4));
    }

    /// How many turns fit before the next time; most where all counters are below an eighth.
    __device__ int settle(int bins) const {
        __syncthreads();
        bool crowded = false;
        for (int i = threadIdx.x; i < fours(bins); i += blockDim.x) {
            const uint4 four = reinterpret_cast<const uint4*>(words)[i];
            const unsigned int any = four.x | four.y | four.z | four.w;
            if ((any & 7 * (EIGHTH << 16 | EIGHTH)) == 0) continue;
            crowded = true;
            if ((any & (HALF << 16 | HALF)) == 0) continue;
            for (int bin = 8 * i; bin < 8 * i + 8; ++bin)
                if (words[bin / 2] >> bin % 2 * 16 & HALF)
                    words[bin / 2] -= HALF << bin % 2 * 16, atomicAdd(result + bin, static_cast<Count>(HALF));
        }
        return __syncthreads_or(crowded) ? CROWDED : EMPTY;
    }

    /// Whether the counters add up to what the threads `counted`: one that ran over would be missing 2^16 or one less.
    __device__ bool add_up_to(unsigned int kept, int bins) const {
        __syncthreads();
        for (int i = threadIdx.x; i < fours(bins); i += blockDim.x) {
            const uint4 four = reinterpret_cast<const uint4*>(words)[i];
            const unsigned int low = (four.x & 0xffff) + (four.y & 0xffff) + (four.z & 0xffff) + (four.w & 0xffff);
            kept -= low + (four.x >> 16) + (four.y >> 16) + (four.z >> 16) + (four.w >> 16);
        }
        return block_reduce(kept, Sum{}, 0u) == 0;
    }

    __device__ void flush(int bins) const {
        __syncthreads();
        if (static_cast<int>(gridDim.x) > few) {
            if (blockIdx.x == 0 && threadIdx.x == 0) *counted = gridDim.x;
            uint4* const own = reinterpret_cast<uint4*>(parts) + static_cast<long long>(blockIdx.x) * fours(bins);
            for (int i = threadIdx.x; i < fours(bins); i += blockDim.x) own[i] = reinterpret_cast<const uint4*>(words)[i];
            return;
        }
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
    unsigned int *parts, *counted;
    int few;

    __device__ void clear(int) const {}
    __device__ void add(int bin, unsigned int amount) const { atomicAdd(result + bin, static_cast<Count>(amount)); }
    __device__ int settle(int) const { return CROWDED; }
    __device__ bool add_up_to(unsigned int, int) const { return true; }
    __device__ void flush(int) const {}
};

/// Counts N samples of each thread and returns how many; where all of the warp's have the same bin, one lane counts for all.
template <int N, class Counters>
__device__ unsigned int count(const Counters& counters, const int (&bin)[N]) {
    if (__all_sync(FULL_WARP, bin[0] == __shfl_sync(FULL_WARP, bin[0], 0))) {
        bool alike = true;
#pragma unroll
        for (int k = 1; k < N; ++k) alike = alike & (bin[k] == bin[0]);
        if (__all_sync(FULL_WARP, alike)) {
            if (threadIdx.x % 32 > 0 || bin[0] == DROPPED) return 0;
            counters.add(bin[0], 32 * N);
            return 32 * N;
        }
    }
    int least = bin[0];
#pragma unroll
    for (int k = 1; k < N; ++k) least = min(least, bin[k]);
    if (__all_sync(FULL_WARP, least > DROPPED)) {  // one branch for all, which seldom goes the other way
#pragma unroll
        for (int k = 0; k < N; ++k) counters.add(bin[k], 1);
        return N;
    }
    unsigned int kept = 0;
#pragma unroll
    for (int k = 0; k < N; ++k)
        if (bin[k] != DROPPED) counters.add(bin[k], 1), ++kept;
    return kept;
}

/// A thread's next samples: two vectors of each axis, on their way while others are counted.
struct Samples {
    float4 u[2], v[2];

    __device__ void load(const float* x, const float* y, long long begin, Share share) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const long long at = begin + k * blockDim.x + threadIdx.x;
            u[k] = v[k] = no_samples();
            if (at < share.end) u[k] = load4_streamed(x + 4 * at), v[k] = load4_streamed(y + 4 * at);
        }
    }
};

// Blocks of at most 896 threads, 32 or 56 samples of each between barriers. `histogram` is zero before. All threads of a
// block walk alike, since they meet at the barriers; they meet seldom, so that some load while others count.
template <template <class> class Counters, class Count, bool CLAMP>
__global__ void __launch_bounds__(896)
    histogram_2d(const float* x, const float* y, Count* histogram, unsigned int* parts, unsigned int* counted, int few,
                 long long n, int columns, int rows, float x_lo, float x_hi, float y_lo, float y_hi) {
    extern __shared__ uint4 on_chip[];
    const Counters<Count> counters = {reinterpret_cast<unsigned int*>(on_chip), histogram, parts, counted, few};
    const Grid<CLAMP> grid = {Axis<CLAMP>(x_lo, x_hi, columns), Axis<CLAMP>(y_lo, y_hi, rows)};
    const int bins = columns * rows;
    const Span span = aligned_span(n, x, y);
    const Share share = block_share(span.vectors), rest = block_share(span.singles(n));
    // Where counters fill slowly at first, and none was handed over, they are not looked at again: if one ran over all the
    // same, all is counted again.
    for (bool watched = false;; watched = true) {
        counters.clear(bins);
        unsigned int kept = 0;
        int left = EMPTY;
        bool watching = true;
        const auto turn = [&] {
            if (!watching || --left > 0) return;
            left = counters.settle(bins);
            watching = watched |= left == CROWDED;
        };
        const long long step = 2 * static_cast<long long>(blockDim.x);
        Samples next;
        next.load(x + span.head, y + span.head, share.begin, share);
        for (long long begin = share.begin; begin < share.end; begin += step) {
            const Samples now = next;
            next.load(x + span.head, y + span.head, begin + step, share);
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                int bin[4];
                grid.find(now.u[k], now.v[k], bin);
                kept += count(counters, bin);
            }
            turn();
        }
        if (watching) counters.settle(bins);
        int singles = 0;
        for (long long begin = rest.begin; begin < rest.end; begin += blockDim.x) {
            const long long at = begin + threadIdx.x;
            float4 u = no_samples(), v = u;
            if (at < rest.end) u.x = x[span.single(at)], v.x = y[span.single(at)];
            int bin[4];
            grid.find(u, v, bin);
            const int one[1] = {bin[0]};
            kept += count(counters, one);
            if (watching && ++singles % 32 == 0) counters.settle(bins);
        }
        if (watching || counters.add_up_to(kept, bins)) break;
        __syncthreads();
    }
    counters.flush(bins);
}

// Adds up the counters that blocks left, as many as `counted` says; a thread has two bins of a share of the blocks.
template <class Count>
__global__ void __launch_bounds__(256)
    histogram_parts(const unsigned int* parts, const unsigned int* counted, Count* histogram, int bins) {
    const int blocks = static_cast<int>(*counted);
    const int word = static_cast<int>(grid_thread()), words = (bins + 7) / 8 * 4;
    if (word >= words) return;
    unsigned int low = 0, high = 0;
#pragma unroll 8
    for (int block = blockIdx.y; block < blocks; block += gridDim.y) {
        const unsigned int both = __ldcg(parts + static_cast<long long>(block) * words + word);
        low += both & 0xffff, high += both >> 16;
    }
    if (low > 0) atomicAdd(histogram + 2 * word, static_cast<Count>(low));
    if (high > 0) atomicAdd(histogram + 2 * word + 1, static_cast<Count>(high));
}
