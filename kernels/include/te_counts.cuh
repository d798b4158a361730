#pragma once

#include "neighbours.cuh"

/// counts[i] = points j other than i with max(|first_i - first_j|, |second_i - second_j|) < eps[i], strictly; FIRST and
/// SECOND coordinates, of which FIRST may be 0. A warp a point.
template <int FIRST, int SECOND>
__device__ void count_nearer(const float* first, const float* second, const float* eps, int* counts, int n) {
    constexpr int D = FIRST + SECOND;
    const Cloud<FIRST, SECOND, 0> points{first, second, nullptr, n};
    const int i = blockIdx.x * (256 / 32) + threadIdx.x / 32;
    if (i >= n) return;
    float own[D], other[D];
    points.read(i, own);
    const float radius = eps[i];
    int found = 0;
    for (int j = threadIdx.x % 32; j < n; j += 32) {
        points.read(j, other);
        found += j != i && distance<0, D>(own, other) < radius;
    }
    found = warp_reduce(found, Sum{});
    if (threadIdx.x % 32 == 0) counts[i] = found;
}
