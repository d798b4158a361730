#pragma once

#include "neighbours/neighbours.cuh"

constexpr int COUNTERS = 256, COUNT_TILE = 512;  // threads of a block, neighbours in shared memory

/// counts[i] = points j other than i with max(|first_i - first_j|, |second_i - second_j|) < eps[i], strictly; FIRST and
/// SECOND coordinates, of which FIRST may be 0. A warp has OWN points, its lanes share the neighbours, so that one load
/// serves OWN pairs. No pair needs a test of its indices: behind the last point are infinities, and a point that counted
/// itself is taken off afterwards.
template <int FIRST, int SECOND, int OWN>
__device__ void count_nearer(const float* first, const float* second, const float* eps, int* counts, int n) {
    using Points = Cloud<FIRST, SECOND, 0>;
    constexpr int D = Points::D, PITCH = Points::PITCH;
    __shared__ __align__(16) float tile[COUNT_TILE * PITCH];
    const Points points{first, second, nullptr, n};
    const int begin = (blockIdx.x * (COUNTERS / 32) + threadIdx.x / 32) * OWN;
    float own[OWN][D], radius[OWN];
    int found[OWN] = {};
#pragma unroll
    for (int p = 0; p < OWN; ++p) {
        points.read(begin + p, own[p]);
        radius[p] = begin + p < n ? eps[begin + p] : 0.0f;
    }
    for (int from = 0; from < n; from += COUNT_TILE) {
        __syncthreads();
        for (int j = threadIdx.x; j < COUNT_TILE; j += COUNTERS) {
            float point[D];
            points.read(from + j, point);
#pragma unroll
            for (int d = 0; d < PITCH; ++d) tile[j * PITCH + d] = d < D ? point[d] : 0.0f;
        }
        __syncthreads();
        float near[OWN] = {};  // of this tile: sums of floats leave more to the units that compare
        const int end = min(COUNT_TILE, (n - from + 31) / 32 * 32);
#pragma unroll 2
        for (int j = threadIdx.x % 32; j < end; j += 32) {
            float other[D];
            read_point<D>(tile + j * PITCH, other);
#pragma unroll
            for (int p = 0; p < OWN; ++p) near[p] += distance<0, D>(own[p], other) < radius[p] ? 1.0f : 0.0f;
        }
#pragma unroll
        for (int p = 0; p < OWN; ++p) found[p] += static_cast<int>(near[p]);
    }
#pragma unroll
    for (int p = 0; p < OWN; ++p) {
        const int itself = distance<0, D>(own[p], own[p]) < radius[p];
        const int count = __reduce_add_sync(FULL_WARP, found[p]) - itself;
        if (threadIdx.x % 32 == p && begin + p < n) counts[begin + p] = count;
    }
}
