#include "neighbours.cuh"

template <int D, int K, bool INDICES, int POINTS>
__global__ void __launch_bounds__(THREADS)
    knn_shares(const float* x, float* distances, int* indices, int n, int splits) {
    nearest_of_share<Cloud<D, 0, 0>, K, INDICES, POINTS>({x, nullptr, nullptr, n, 0}, splits, distances, indices);
}

// eps: the distance of the K-th neighbour, NaN for a point that is not finite; idx: its neighbours, the nearest first.
template <int K, bool INDICES>
__global__ void __launch_bounds__(THREADS)
    knn_merge(const float* distances, const int* indices, float* eps, int* idx, int n, int splits) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    const Nearest<K, INDICES> nearest = nearest_of_all<K, INDICES>(distances, indices, n, splits, i);
    eps[i] = nearest.distance[K - 1];
    if constexpr (INDICES)
#pragma unroll
        for (int q = 0; q < K; ++q) idx[static_cast<long long>(i) * K + q] = nearest.index[q];
}

// One thread per point, everything from global memory.
template <int D, int K>
__global__ void __launch_bounds__(THREADS) knn_naive(const float* x, float* eps, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const Cloud<D, 0, 0> points = {x, nullptr, nullptr, n, 0};
    float own[D], other[D];
    const bool finite = points.read(i, own);
    Nearest<K, false> nearest;
    for (int j = 0; j < n; ++j) {
        points.read(j, other);
        const float d = distance<0, D>(own, other);
        if (j != i && d < nearest.distance[K - 1]) nearest.insert(d, j);
    }
    if (i < n) eps[i] = finite ? nearest.distance[K - 1] : undefined();
}
