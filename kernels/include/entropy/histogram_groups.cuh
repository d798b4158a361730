#pragma once

#include "sums/reduce.cuh"
#include "entropy/sample_bins.cuh"

// More bins than shared memory holds, and many samples: bins go in eights, in turn, to 2^bits groups, whose counters it does
// hold. First each tile of samples is sorted by group into `keys` (the bin's place in its group), each group's rounded up
// to eight by keys that count nothing; `starts` [group, tile] says at which eighth key it begins. Then blocks count one
// group each.

constexpr int SORTERS = 256, PER_THREAD = 16, SORTED = SORTERS * PER_THREAD, MOST_GROUPS = 256;
constexpr unsigned short NO_KEY = 0xffff;

/// Four neighbours of an array of n floats; what is beyond it is nothing.
__device__ inline float4 four_at(const float* from, long long at, long long n) {
    const auto one = [&](long long i) { return i < n ? from[i] : nothing(); };
    return make_float4(one(at), one(at + 1), one(at + 2), one(at + 3));
}

/// How bins are shared out among groups.
struct Groups {
    int bits;

    __device__ int count() const { return 1 << bits; }
    __device__ int of(int bin) const { return bin >> 3 & (count() - 1); }
    __device__ int key(int bin) const { return (bin >> bits & ~7) | (bin & 7); }
    __device__ int bin(int group, int key) const { return (key >> 3 << bits | group) << 3 | (key & 7); }
    /// Keys of a group of that many bins.
    __device__ int held(int bins) const { return ((bins + 7) / 8 + count() - 1) / count() * 8; }
};

/// The tile's counts by group become where groups begin, rounded up to eights, and so do `starts`. By one warp.
__device__ inline void begin_groups(const unsigned int* counts, unsigned int* begins, int groups, unsigned short* starts,
                                    int tiles) {
    const int lane = threadIdx.x;
    unsigned int before = 0;
    for (int first = 0; first < groups; first += 32) {
        const int group = first + lane;
        const unsigned int own = group < groups ? (counts[group] + 7) / 8 : 0;
        unsigned int sum = own;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const unsigned int left = __shfl_up_sync(FULL_WARP, sum, step);
            if (lane >= step) sum += left;
        }
        const unsigned int begin = before + sum - own;
        if (group < groups) begins[group] = begin, starts[static_cast<long long>(group) * tiles] = begin;
        before += __shfl_sync(FULL_WARP, sum, 31);
    }
    if (lane == 0) begins[groups] = before, starts[static_cast<long long>(groups) * tiles] = before;
}

template <bool CLAMP>
__global__ void __launch_bounds__(SORTERS, 4)
    histogram_sort(const float* x, const float* y, unsigned short* keys, unsigned short* starts, long long n, int columns,
                   int rows, float x_lo, float x_hi, float y_lo, float y_hi, int bits, int room) {
    __shared__ unsigned int counts[MOST_GROUPS + 32], begins[MOST_GROUPS + 1];
    constexpr int ROOM = SORTED + 8 * MOST_GROUPS;
    __shared__ __align__(16) unsigned short sorted[ROOM + SORTERS];  // behind it goes what is dropped
    const Grid<CLAMP> grid = {Axis<CLAMP>(x_lo, x_hi, columns), Axis<CLAMP>(y_lo, y_hi, rows)};
    const Groups groups = {bits};
    const bool aligned = misalignment(x) == 0 && misalignment(y) == 0;
    const long long first = static_cast<long long>(blockIdx.x) * SORTED;
    for (int g = threadIdx.x; g < groups.count() + 32; g += SORTERS) counts[g] = 0;
    __syncthreads();
    int bin[PER_THREAD / 4][4];
    unsigned int rank[PER_THREAD / 2];  // two in a word
    const bool whole = aligned && first + SORTED <= n;
    float4 u[PER_THREAD / 4], v[PER_THREAD / 4];  // all on their way before the first is needed
    if (whole) {
        const float4* const xs = reinterpret_cast<const float4*>(x + first) + threadIdx.x;
        const float4* const ys = reinterpret_cast<const float4*>(y + first) + threadIdx.x;
#pragma unroll
        for (int k = 0; k < PER_THREAD / 4; ++k) u[k] = __ldcs(xs + k * SORTERS), v[k] = __ldcs(ys + k * SORTERS);
    } else {
#pragma unroll
        for (int k = 0; k < PER_THREAD / 4; ++k) {
            const long long at = first + 4 * (k * SORTERS + static_cast<int>(threadIdx.x));
            u[k] = four_at(x, at, n), v[k] = four_at(y, at, n);
        }
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD / 4; ++k) grid.find(u[k], v[k], bin[k]);
    const int spare = groups.count() + static_cast<int>(threadIdx.x) % 32;  // counts what is dropped: none needs a branch
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        const int own = bin[i / 4][i % 4];
        const unsigned int before = atomicAdd(counts + (own == DROPPED ? spare : groups.of(own)), 1u);
        rank[i / 2] = i % 2 ? rank[i / 2] | before << 16 : before;
    }
    __syncthreads();
    if (threadIdx.x < 32) begin_groups(counts, begins, groups.count(), starts + blockIdx.x, gridDim.x);
    __syncthreads();
    for (int g = threadIdx.x; g < groups.count(); g += SORTERS)
        for (unsigned int i = 8 * begins[g] + counts[g]; i < 8 * begins[g + 1]; ++i) sorted[i] = NO_KEY;
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        const int own = bin[i / 4][i % 4];
        const unsigned int before = rank[i / 2] >> i % 2 * 16 & 0xffff;
        const unsigned int after = 8 * begins[groups.of(own)] + before;
        sorted[own == DROPPED ? ROOM + threadIdx.x : after] = static_cast<unsigned short>(groups.key(own));
    }
    __syncthreads();
    uint4* const to = reinterpret_cast<uint4*>(keys + static_cast<long long>(blockIdx.x) * room);
    for (unsigned int i = threadIdx.x; i < begins[groups.count()]; i += SORTERS)
        to[i] = reinterpret_cast<const uint4*>(sorted)[i];
}

/// Eight keys of a lane; those that are none go to the counter behind the group's.
struct Keys {
    uint4 pairs;

    __device__ void count(unsigned int* counters, unsigned int held) const {
        const unsigned int both[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            atomicAdd(counters + min(both[k] & 0xffff, held), 1u);
            atomicAdd(counters + min(both[k] >> 16, held), 1u);
        }
    }
};

template <class Count>
__global__ void __launch_bounds__(1024)
    histogram_groups(const unsigned short* keys, const unsigned short* starts, Count* histogram, int tiles, int bins,
                     int bits, int room) {
    extern __shared__ uint4 on_chip[];
    unsigned int* const counters = reinterpret_cast<unsigned int*>(on_chip);
    constexpr int AHEAD = 4, REST = 32 / AHEAD;  // tiles of a warp whose keys are on their way at a time; lanes for what
                                                 // each has beyond the 32 eights that the lanes take
    const Groups groups = {bits};
    const int group = blockIdx.x % groups.count(), part = blockIdx.x / groups.count(), parts = gridDim.x / groups.count();
    const int held = groups.held(bins), warps = blockDim.x / 32, lane = threadIdx.x % 32;
    const auto of_tile = [&](int tile) {
        return reinterpret_cast<const uint4*>(keys + static_cast<long long>(tile) * room);
    };
    for (int i = threadIdx.x; i <= held; i += blockDim.x) counters[i] = 0;
    __syncthreads();
    for (int base = (part * warps + threadIdx.x / 32) * 32; base < tiles; base += parts * warps * 32) {
        const int tile = min(base + lane, tiles - 1);
        const unsigned short* const own = starts + static_cast<long long>(group) * tiles + tile;
        const int starting = own[0], ending = base + lane < tiles ? own[tiles] : starting;
        const bool crowded = __any_sync(FULL_WARP, ending - starting > 32 + REST);
        for (int t = 0; t < 32 && base + t < tiles; t += AHEAD) {
            Keys next[AHEAD + 1];
#pragma unroll
            for (int k = 0; k <= AHEAD; ++k) {
                const int place = t + (k < AHEAD ? k : lane / REST);
                const int begin = __shfl_sync(FULL_WARP, starting, place), end = __shfl_sync(FULL_WARP, ending, place);
                const int at = begin + (k < AHEAD ? lane : 32 + lane % REST);
                next[k].pairs = make_uint4(~0u, ~0u, ~0u, ~0u);
                if (at < end) next[k].pairs = __ldcs(of_tile(base + place) + at);
            }
#pragma unroll
            for (int k = 0; k <= AHEAD; ++k)
                if (next[k].pairs.x != ~0u) next[k].count(counters, held);
            for (int k = 0; crowded && k < AHEAD; ++k) {
                const int begin = __shfl_sync(FULL_WARP, starting, t + k), end = __shfl_sync(FULL_WARP, ending, t + k);
                for (int at = begin + 32 + REST + lane; at < end; at += 32)
                    Keys{of_tile(base + t + k)[at]}.count(counters, held);
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < held; i += blockDim.x)
        if (counters[i] > 0) atomicAdd(histogram + groups.bin(group, i), static_cast<Count>(counters[i]));
}
