#pragma once

#include "neighbours.cuh"

// Kraskov-Stoegbauer-Grassberger estimates. One form serves all: with counts of neighbours nearer than eps in the
// spaces xz, yz and z, I(X;Y|Z) = psi(k) + mean[psi(n_z + 1) - psi(n_xz + 1) - psi(n_yz + 1)]; without z, n_z = N - 1
// and this is the mutual information; with x and z the pasts and y the future it is the transfer entropy. blockIdx.y is
// the number of the shift.

/// psi(n) for an integer n > 0, to 1e-13.
__device__ inline double digamma_of(int n) {
    double low = 0.0;
    for (; n < 8; ++n) low += 1.0 / n;
    const double r = 1.0 / n, s = r * r;
    const double tail = s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132)))));
    return log(static_cast<double>(n)) - 0.5 * r - tail - low;
}

/// How far x is shifted in this launch's runs; `shifts` has one for each, 0 for the first.
template <int DX, int DY, int DZ>
__device__ Cloud<DX, DY, DZ> shifted_cloud(const float* x, const float* y, const float* z, const int* shifts, int n) {
    return {x, y, z, n, blockIdx.y == 0 ? 0 : shifts[blockIdx.y - 1]};
}

template <int DX, int DY, int DZ, int K>
__global__ void __launch_bounds__(THREADS)
    ksg_shares(const float* x, const float* y, const float* z, const int* shifts, float* distances, int n, int splits) {
    const auto points = shifted_cloud<DX, DY, DZ>(x, y, z, shifts, n);
    nearest_of_share<Cloud<DX, DY, DZ>, K, false, 2>(points, splits, distances, nullptr);
}

template <int K>
__global__ void __launch_bounds__(THREADS) ksg_merge(const float* distances, float* eps, int n, int splits) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        eps[static_cast<long long>(blockIdx.y) * n + i] =
            nearest_of_all<K, false>(distances, nullptr, n, splits, i).distance[K - 1];
}

/// Counts of points nearer than eps, as floats (exact up to 2^24): the unit that adds them is otherwise idle.
struct Counts {
    float xz = 0.0f, yz = 0.0f, z = 0.0f;
};

/// counts[space][point] += neighbours (and the point itself where eps > 0) nearer than eps in xz, yz and z. The
/// differences of z serve all three. `counts` begins at 0. With SIDES, yz has radii of its own, behind those of xz.
template <int DX, int DY, int DZ, bool SIDES = false>
__global__ void __launch_bounds__(THREADS)
    ksg_counts(const float* x, const float* y, const float* z, const int* shifts, const float* eps, int* counts, int n,
               int splits) {
    constexpr int POINTS = 2, D = DX + DY + DZ;
    const auto points = shifted_cloud<DX, DY, DZ>(x, y, z, shifts, n);
    const Share share(n, splits, THREADS * POINTS);
    float own[POINTS][D], radius[POINTS], side[POINTS];
    Counts found[POINTS];
    int place[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; ++p) {
        place[p] = share.first_point + p * THREADS + static_cast<int>(threadIdx.x);
        points.read(place[p], own[p]);
        radius[p] = place[p] < n ? eps[static_cast<long long>(blockIdx.y) * n + place[p]] : 0.0f;
        side[p] = SIDES && place[p] < n ? eps[n + place[p]] : radius[p];
    }
    visit_neighbours(points, share, [&](const float* from, int) {
        float other[D];
        read_point(from, other);
#pragma unroll
        for (int p = 0; p < POINTS; ++p) {
            const bool near = DZ == 0 || distance<DX + DY, D>(own[p], other) < radius[p];
            if (DZ > 0 && near) found[p].z += 1.0f;
            if (near && distance<0, DX>(own[p], other) < radius[p]) found[p].xz += 1.0f;
            if (near && distance<DX, DX + DY>(own[p], other) < side[p]) found[p].yz += 1.0f;
        }
    });
    int* const to = counts + static_cast<long long>(blockIdx.y) * 3 * n;
#pragma unroll
    for (int p = 0; p < POINTS; ++p) {
        if (place[p] >= n) continue;
        atomicAdd(to + place[p], static_cast<int>(found[p].xz));
        atomicAdd(to + n + place[p], static_cast<int>(found[p].yz));
        if (DZ > 0) atomicAdd(to + 2 * static_cast<long long>(n) + place[p], static_cast<int>(found[p].z));
    }
}

/// Every point's term, times `scale` (of the unit), into `local` for the unshifted run; sums of blocks into `by_block`.
/// SECOND is the second estimator's term, psi(k) - 1/k + psi(N) - psi(n_x) - psi(n_y).
template <int DZ, bool SECOND = false>
__global__ void __launch_bounds__(256)
    ksg_terms(const float* eps, const int* counts, float* local, double* by_block, int n, int k, float scale) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    double term = 0.0;
    if (i < n) {
        const float radius = eps[static_cast<long long>(blockIdx.y) * n + i];
        const int* const own = counts + static_cast<long long>(blockIdx.y) * 3 * n + i;
        const int self = radius > 0.0f;
        const int n_z = DZ > 0 ? own[2 * static_cast<long long>(n)] - self : n - 1;
        const int beyond = SECOND ? 0 : 1;
        term = digamma_of(k) - (SECOND ? 1.0 / k : 0.0) + digamma_of(n_z + 1)
               - digamma_of(own[0] - self + beyond) - digamma_of(own[n] - self + beyond);
        term = isnan(radius) ? static_cast<double>(undefined()) : scale * term;
        if (blockIdx.y == 0) local[i] = static_cast<float>(term);
    }
    const double total = block_sum(term);
    if (threadIdx.x == 0) by_block[static_cast<long long>(blockIdx.y) * gridDim.x + blockIdx.x] = total;
}

/// The mean of the terms of each run: the estimate, in `estimates[blockIdx.y]`.
extern "C" __global__ void __launch_bounds__(256)
    ksg_mean(const double* by_block, float* estimates, int n, int blocks) {
    double part = 0.0;
    const double* const own = by_block + static_cast<long long>(blockIdx.y) * blocks;
    for (int b = threadIdx.x; b < blocks; b += blockDim.x) part += own[b];
    const double total = block_sum(part);
    if (threadIdx.x == 0) estimates[blockIdx.y] = static_cast<float>(total / n);
}
