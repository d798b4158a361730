#pragma once

#include <cuda_fp16.h>

#include "arrays/vector_load.cuh"

// Walks of a whole grid over arrays of float and half, eight or four elements at a time: 16 bytes of one of them.

/// n elements as `head` singles, `vectors` groups of eight aligned in both arrays, and singles again; all singles where the
/// arrays are not aligned alike.
__device__ inline Span span_of_eights(long long n, const float* floats, const __half* halves) {
    const int past = static_cast<int>(reinterpret_cast<unsigned long long>(halves) & 15);
    const long long head = (16 - past) % 16 / 2;
    if (misalignment(floats + head) != 0 || n < head + 8) return {n, 0};
    return {head, (n - head) / 8};
}

/// Calls group(i) where a group of EACH elements begins at element i, and one(i) for each single element.
template <int EACH, class Group, class One>
__device__ void walk_groups(long long n, Span span, Group group, One one) {
#pragma unroll 1
    for (long long at = grid_thread(); at < span.vectors; at += grid_threads()) group(span.head + EACH * at);
#pragma unroll 1
    for (long long i = grid_thread(); i < n - EACH * span.vectors; i += grid_threads())
        one(i < span.head ? i : i + EACH * span.vectors);
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
    walk_groups<8>(n, span_of_eights(n, x, y), eight, [&](long long i) { y[i] = __float2half_rn(f(x[i])); });
}

/// n elements as `head` singles, `vectors` groups of four aligned in both arrays, and singles again.
__device__ inline Span span_of_fours(long long n, const float* floats, const __half* halves) {
    const int past = static_cast<int>(reinterpret_cast<unsigned long long>(halves) & 7);
    const long long head = (8 - past) % 8 / 2;
    if (misalignment(floats + head) != 0 || n < head + 4) return {n, 0};
    return {head, (n - head) / 4};
}

/// y[i] = f(x[i]), by a 1-D grid of any size: four elements at a time, so that a warp stores whole lines. Where aligned
/// arrays have no more groups than the grid threads, each thread has one and no loop, as in map_elements: faster than
/// several groups on their way.
template <class F>
__device__ void map_from_halves(const __half* x, float* y, long long n, F f) {
    const auto four = [&](long long i) {
        const uint2 packed = *reinterpret_cast<const uint2*>(x + i);
        const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&packed.x));
        const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&packed.y));
        store4(y + i, map4(make_float4(low.x, low.y, high.x, high.y), f));
    };
    const auto one = [&](long long i) { y[i] = f(__half2float(x[i])); };
    if ((reinterpret_cast<unsigned long long>(x) & 7) == 0 && one_vector_each(n, y)) {
        const long long at = 4 * grid_thread();
        if (at + 4 <= n) four(at);
#pragma unroll 1
        for (long long i = at; at + 4 > n && i < n; ++i) one(i);
        return;
    }
    walk_groups<4>(n, span_of_fours(n, y, x), four, one);
}
