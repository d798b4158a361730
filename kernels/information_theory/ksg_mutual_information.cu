#include "ksg.cuh"

// The second estimator: the k nearest are needed themselves, for the rectangle that they span around a point.
template <int DX, int DY, int K>
__global__ void __launch_bounds__(THREADS)
    ksg2_shares(const float* x, const float* y, float* distances, int* indices, int n, int splits) {
    nearest_of_share<Cloud<DX, DY, 0>, K, true, 2>({x, y, nullptr, n, 0}, splits, distances, indices);
}

/// Half the rectangle's sides in x, then in y, each one step up: nearer than that is at most as far.
template <int DX, int DY, int K>
__global__ void __launch_bounds__(THREADS)
    ksg2_merge(const float* x, const float* y, const float* distances, const int* indices, float* sides, int n,
               int splits) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    const Nearest<K, true> nearest = nearest_of_all<K, true>(distances, indices, n, splits, i);
    const Cloud<DX, DY, 0> points = {x, y, nullptr, n, 0};
    float own[DX + DY], other[DX + DY], in_x = 0.0f, in_y = 0.0f;
    const bool finite = points.read(i, own);
#pragma unroll
    for (int q = 0; q < K; ++q) {
        if (nearest.index[q] >= 0) points.read(nearest.index[q], other);
        const bool there = nearest.index[q] >= 0;
        in_x = fmaxf(in_x, there ? distance<0, DX>(own, other) : infinity());
        in_y = fmaxf(in_y, there ? distance<DX, DX + DY>(own, other) : infinity());
    }
    sides[i] = finite ? nextafterf(in_x, infinity()) : undefined();
    sides[n + i] = finite ? nextafterf(in_y, infinity()) : undefined();
}
