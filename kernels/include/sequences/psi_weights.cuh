#pragma once

#include "sums/reduce.cuh"

/// psi_j of every step in turn, of at most 32 lags: after step j lane i has what the weights so far add to psi_{j+1+i}.
__device__ inline double next_weight(double coefficient, double& ahead, bool first) {
    const double weight = first ? 1.0 : __shfl_sync(FULL_WARP, ahead, 0), next = __shfl_down_sync(FULL_WARP, ahead, 1);
    ahead = fma(coefficient, weight, threadIdx.x < 31 ? next : 0.0);
    return weight;
}

// growth[h] = sum of psi_j^2, j = 0..h, where psi_0 = 1 and psi_j = sum of phi_i psi_{j-i}. One warp, step by step; only
// more lags than lanes need the weights in memory.
extern "C" __global__ void psi_weights(const float* phi, double* psi, float* growth, long long cols, int lags) {
    const int lane = threadIdx.x;
    const double coefficient = lane < lags ? phi[lane] : 0.0f;
    double total = 0.0, ahead = 0.0;
    for (long long j = 0; j < cols; ++j) {
        double weight = 0.0;
        if (lags <= 32) {
            weight = next_weight(coefficient, ahead, j == 0);
        } else {
            for (long long i = lane; i < lags && i < j; i += 32) weight = fma(static_cast<double>(phi[i]), psi[j - 1 - i], weight);
            weight = j == 0 ? 1.0 : warp_reduce(weight, Sum{});
            if (lane == 0) psi[j] = weight;
            __syncwarp();
        }
        total = fma(weight, weight, total);
        if (lane == 0) growth[j] = static_cast<float>(total);
    }
}
