#include "neighbours/te_points.cuh"

// eps[i] = the K-th smallest of row i, ties counted: a warp a row.
template <int K>
__global__ void __launch_bounds__(256) te_find_kth_distance(const float* distances, float* eps, int n) {
    const int row = blockIdx.x * (256 / 32) + threadIdx.x / 32;
    if (row >= n) return;
    const float* const from = distances + static_cast<long long>(row) * n;
    Smallest<K> nearest;
#pragma unroll 4
    for (int j = threadIdx.x % 32; j < n; j += 32) nearest.offer(from[j]);
    const float kth = nearest.kth_of_warp();
    if (threadIdx.x % 32 == 0) eps[row] = kth;
}
