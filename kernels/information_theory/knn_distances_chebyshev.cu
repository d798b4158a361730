#include "neighbours/neighbours.cuh"

template <int D>
__global__ void __launch_bounds__(THREADS) knn_minima(const float* x, float* minima, int n, int group, int splits) {
    find_minima(Cloud<D, 0, 0>{x, nullptr, nullptr, n}, splits, group, minima);
}

// eps: the distance of the K-th neighbour, NaN for a point that is not finite; idx: its neighbours, the nearest first.
template <int D, int K, bool INDICES>
__global__ void __launch_bounds__(THREADS)
    knn_nearest(const float* x, const float* minima, float* eps, int* idx, int n, int group) {
    const int i = static_cast<int>(blockIdx.x * (THREADS / 32) + threadIdx.x / 32), groups = (n + group - 1) / group;
    if (i >= n) return;
    Nearest<K, INDICES> nearest;
    const float* const own = minima + static_cast<long long>(i) * groups;
    const bool finite = find_nearest(Cloud<D, 0, 0>{x, nullptr, nullptr, n}, own, group, i, nearest);
    if (threadIdx.x % 32 > 0) return;
    eps[i] = finite ? nearest.distance[K - 1] : undefined();
    if constexpr (INDICES)
#pragma unroll
        for (int q = 0; q < K; ++q) idx[static_cast<long long>(i) * K + q] = finite ? nearest.index[q] : -1;
}

// One thread per point, everything from global memory.
template <int D, int K>
__global__ void __launch_bounds__(THREADS) knn_naive(const float* x, float* eps, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const Cloud<D, 0, 0> points = {x, nullptr, nullptr, n};
    float own[D], other[D];
    const bool finite = points.read(i, own);
    Nearest<K, false> nearest;
    for (int j = 0; j < n; ++j) {
        points.read(j, other);
        if (j != i) nearest.offer(distance<0, D>(own, other), j);
    }
    if (i < n) eps[i] = finite ? nearest.distance[K - 1] : undefined();
}
