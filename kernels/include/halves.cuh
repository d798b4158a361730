#pragma once

#include <cuda_fp16.h>

#include "vector_load.cuh"

// Walks of a whole grid over arrays of float and half, eight elements a thread: 16 bytes of halves, 32 of floats.

/// n elements as `head` singles, `vectors` groups of eight aligned in both arrays, and singles again; all singles where the
/// arrays are not aligned alike.
__device__ inline Span span_of_eights(long long n, const float* floats, const __half* halves) {
    const int past = static_cast<int>(reinterpret_cast<unsigned long long>(halves) & 15);
    const long long head = (16 - past) % 16 / 2;
    if (misalignment(floats + head) != 0 || n < head + 8) return {n, 0};
    return {head, (n - head) / 8};
}

/// Calls eight(i) where a group of eight begins at element i, and one(i) for each single element.
template <class Eight, class One>
__device__ void walk_eights(long long n, Span span, Eight eight, One one) {
#pragma unroll 1
    for (long long at = grid_thread(); at < span.vectors; at += grid_threads()) eight(span.head + 8 * at);
#pragma unroll 1
    for (long long i = grid_thread(); i < n - 8 * span.vectors; i += grid_threads())
        one(i < span.head ? i : i + 8 * span.vectors);
}

/// y[i] = f(x[i]) rounded to nearest even.
template <class F>
__device__ void map_to_halves(const float* x, __half* y, long long n, F f) {
    const auto eight = [&](long long i) {
        const float4 low = map4(load4(x + i), f), high = map4(load4(x + i + 4), f);
        uint4 packed;
        __half2* const pair = reinterpret_cast<__half2*>(&packed);
        pair[0] = __floats2half2_rn(low.x, low.y), pair[1] = __floats2half2_rn(low.z, low.w);
        pair[2] = __floats2half2_rn(high.x, high.y), pair[3] = __floats2half2_rn(high.z, high.w);
        *reinterpret_cast<uint4*>(y + i) = packed;
    };
    walk_eights(n, span_of_eights(n, x, y), eight, [&](long long i) { y[i] = __float2half_rn(f(x[i])); });
}

/// y[i] = f(x[i]).
template <class F>
__device__ void map_from_halves(const __half* x, float* y, long long n, F f) {
    const auto eight = [&](long long i) {
        const uint4 packed = *reinterpret_cast<const uint4*>(x + i);
        const __half2* const pair = reinterpret_cast<const __half2*>(&packed);
        const float2 a = __half22float2(pair[0]), b = __half22float2(pair[1]);
        const float2 c = __half22float2(pair[2]), d = __half22float2(pair[3]);
        store4(y + i, map4(make_float4(a.x, a.y, b.x, b.y), f));
        store4(y + i + 4, map4(make_float4(c.x, c.y, d.x, d.y), f));
    };
    walk_eights(n, span_of_eights(n, y, x), eight, [&](long long i) { y[i] = f(__half2float(x[i])); });
}
