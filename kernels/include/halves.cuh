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

/// n elements as `head` singles, `vectors` groups of four aligned in both arrays, and singles again.
__device__ inline Span span_of_fours(long long n, const float* floats, const __half* halves) {
    const int past = static_cast<int>(reinterpret_cast<unsigned long long>(halves) & 7);
    const long long head = (8 - past) % 8 / 2;
    if (misalignment(floats + head) != 0 || n < head + 4) return {n, 0};
    return {head, (n - head) / 4};
}

/// y[i] = f(x[i]), by a 1-D grid of any size: four elements at a time, so that a warp stores whole lines, and two such
/// groups of a thread on their way.
template <class F>
__device__ void map_from_halves(const __half* x, float* y, long long n, F f) {
    constexpr int GROUPS = 2;
    const Span span = span_of_fours(n, y, x);
    const uint2* const from = reinterpret_cast<const uint2*>(x + span.head);
    float* const to = y + span.head;
    const auto widened = [&](uint2 packed) {
        const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&packed.x));
        const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&packed.y));
        return map4(make_float4(low.x, low.y, high.x, high.y), f);
    };
    const auto tile = [&](long long at, long long apart, auto there) {
        uint2 packed[GROUPS];
#pragma unroll
        for (int k = 0; k < GROUPS; ++k)
            if (there(k)) packed[k] = __ldg(from + at + k * apart);
#pragma unroll
        for (int k = 0; k < GROUPS; ++k)
            if (there(k)) store4(to + 4 * (at + k * apart), widened(packed[k]));
    };
    walk<GROUPS>(span.vectors, tile);
#pragma unroll 1
    for (long long i = grid_thread(); i < span.singles(n); i += grid_threads()) {
        const long long at = span.single(i);
        y[at] = f(__half2float(x[at]));
    }
}
