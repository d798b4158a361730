#include "arrays/vector_load.cuh"

// E[i][d] = x[first + i + d step]: step is tau and first 0, or -tau and (m - 1) tau where the newest sample comes first.

// n / m, from `reciprocal`, 2^64 / m + 1: exact while n m < 2^64.
__device__ inline long long quotient(long long n, int m, unsigned long long reciprocal) {
    return m == 1 ? n : static_cast<long long>(__umul64hi(static_cast<unsigned long long>(n), reciprocal));
}

constexpr int GROUPS = 2;  // of a thread

/// Hands the place in x of each of the `values` outputs from `at` on to take(k, place), whatever rows they belong to:
/// neighbours share what they read in the L1 cache.
template <class Take>
__device__ void visit_places(long long at, int values, long long first, long long step, int m,
                             unsigned long long reciprocal, Take take) {
    long long row = quotient(at, m, reciprocal);
    int d = static_cast<int>(at - row * m);
    long long place = first + row + d * step;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (k < values) take(k, place);
        if (++d == m) d = 0, place = first + ++row;
        else place += step;
    }
}

// GROUPS groups of four outputs per thread, blockDim.x apart, all read before the first is stored. The stores are streamed:
// m values are written for each that is read.
extern "C" __global__ void __launch_bounds__(128)
    time_delayed_embedding(const float* __restrict__ x, float* __restrict__ embedded, long long count, long long first,
                           long long step, int m, unsigned long long reciprocal) {
    const long long begin = 4 * (static_cast<long long>(blockIdx.x) * GROUPS * blockDim.x + threadIdx.x);
    if (begin + 4 * (GROUPS - 1) * blockDim.x + 4 <= count) {
        float value[GROUPS][4];
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
            visit_places(begin + 4 * g * blockDim.x, 4, first, step, m, reciprocal,
                         [&](int k, long long place) { value[g][k] = __ldg(x + place); });
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
            store4_streamed(embedded + begin + 4 * g * blockDim.x,
                            make_float4(value[g][0], value[g][1], value[g][2], value[g][3]));
        return;
    }
#pragma unroll 1
    for (long long at = begin; at < count; at += 4 * blockDim.x)
        visit_places(at, static_cast<int>(min(count - at, 4ll)), first, step, m, reciprocal,
                     [&](int k, long long place) { embedded[at + k] = __ldg(x + place); });
}
