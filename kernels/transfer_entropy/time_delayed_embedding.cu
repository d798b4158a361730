#include "vector_load.cuh"

// E[i][d] = x[first + i + d step]: step is tau and first 0, or -tau and (m - 1) tau where the newest sample comes first.

// n / m, from `reciprocal`, 2^64 / m + 1: exact while n m < 2^64.
__device__ inline long long quotient(long long n, int m, unsigned long long reciprocal) {
    return m == 1 ? n : static_cast<long long>(__umul64hi(static_cast<unsigned long long>(n), reciprocal));
}

// One group of four outputs per thread, whatever rows they belong to: neighbours share what they read in the L1 cache.
extern "C" __global__ void __launch_bounds__(256)
    time_delayed_embedding(const float* __restrict__ x, float* __restrict__ embedded, long long count, long long first,
                           long long step, int m, unsigned long long reciprocal) {
    const long long at = 4 * grid_thread();
    if (at >= count) return;
    long long row = quotient(at, m, reciprocal);
    int d = static_cast<int>(at - row * m);
    const float* from = x + first + row + d * step;
    float value[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (at + k >= count) break;
        value[k] = __ldg(from);
        if (++d == m) d = 0, from = x + first + ++row;
        else from += step;
    }
    if (at + 4 <= count) return store4(embedded + at, make_float4(value[0], value[1], value[2], value[3]));
#pragma unroll
    for (int k = 0; k < 3; ++k)
        if (at + k < count) embedded[at + k] = value[k];
}
