#pragma once

#include "sums/reduce.cuh"

// Running sums: of a warp's chunk of 128 floats, and over all tiles of a row in one pass by looking back.

constexpr int CHUNK = 128;  // floats that a warp scans at a time, four neighbours per lane

/// Turns the warp's CHUNK items, four neighbours in each lane, into their inclusive running sums. The sum of all of them
/// is returned, in every lane.
__device__ inline float scan_chunk(float (&x)[4]) {
    x[1] += x[0], x[2] += x[1], x[3] += x[2];
    float sum = x[3];
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        const float before = __shfl_up_sync(FULL_WARP, sum, apart);
        if (threadIdx.x % 32 >= apart) sum += before;
    }
    const float left = __shfl_up_sync(FULL_WARP, sum, 1);
    if (threadIdx.x % 32 > 0)
        for (int j = 0; j < 4; ++j) x[j] += left;
    return __shfl_sync(FULL_WARP, sum, 31);
}

/// A sum in double precision as two floats, to which further floats can be added without losing what comes before.
struct Carry {
    float high, low;

    __device__ explicit Carry(double sum)
        : high(static_cast<float>(sum)), low(isfinite(high) ? static_cast<float>(sum - high) : 0.0f) {}
    __device__ float plus(float x) const { return high + (low + x); }
};

/// What a tile has published: nothing yet (0), its own sum, or the sum of all tiles up to it. The kind stands in the last
/// two bits of the double, so that one word tells all and no fence is needed.
struct TileState {
    static constexpr unsigned long long OWN = 1, UP_TO = 2, KIND = 3;
    unsigned long long word;

    __device__ static void publish(unsigned long long* to, double sum, unsigned long long kind) {
        atomicExch(to, (static_cast<unsigned long long>(__double_as_longlong(sum)) & ~KIND) | kind);
    }
    /// Loads, which many blocks may ask for at once; atomics on neighbouring words would wait for each other.
    __device__ static TileState wait_for(const unsigned long long* from) {
        const volatile unsigned long long* const now = from;
        unsigned long long word = *now;
        for (; word == 0; word = *now) __nanosleep(50);
        return {word};
    }
    __device__ unsigned long long kind() const { return word & KIND; }
    __device__ double sum() const { return __longlong_as_double(static_cast<long long>(word & ~KIND)); }
};

/// The sum of all tiles before `tile`, whose own sum is `own`: decoupled look-back (Merrill and Garland 2016), 32 tiles
/// at a time. One warp calls it with all lanes and has the result in all. `states` is the row's, zero before the launch;
/// tiles must be taken in the order in which blocks start, or a block might wait for one that never runs.
__device__ inline double sum_before(double own, int tile, unsigned long long* states) {
    const int lane = threadIdx.x % 32;
    if (lane == 0) TileState::publish(states + tile, own, tile == 0 ? TileState::UP_TO : TileState::OWN);
    if (tile == 0) return 0.0;
    double sum = 0.0;
    for (int last = tile - 1;; last -= 32) {
        const bool there = last - lane >= 0;
        TileState state = {TileState::UP_TO};
        if (there) state = TileState::wait_for(states + last - lane);
        const unsigned int complete = __ballot_sync(FULL_WARP, state.kind() == TileState::UP_TO);
        const int nearest = complete == 0 ? 32 : __ffs(static_cast<int>(complete)) - 1;
        sum += warp_reduce(lane <= nearest ? state.sum() : 0.0, Sum{});
        if (complete != 0) break;
    }
    if (lane == 0) TileState::publish(states + tile, sum + own, TileState::UP_TO);
    return sum;
}
