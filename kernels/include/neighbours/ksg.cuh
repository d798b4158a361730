#pragma once

#include "neighbours/neighbours.cuh"

// Kraskov-Stoegbauer-Grassberger estimates. One form serves all: with counts of neighbours nearer than eps in the
// spaces xz, yz and z, I(X;Y|Z) = psi(k) + mean[psi(n_z + 1) - psi(n_xz + 1) - psi(n_yz + 1)]; without z, n_z = N - 1
// and this is the mutual information; with x and z the pasts and y the future it is the transfer entropy. blockIdx.y is
// the number of the run, of which all but the first take x in another order.

/// psi(n) for an integer n > 0, to 1e-13.
__device__ inline double digamma_of(int n) {
    double low = 0.0;
    for (; n < 8; ++n) low += 1.0 / n;
    const double r = 1.0 / n, s = r * r;
    const double tail = s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132)))));
    return log(static_cast<double>(n)) - 0.5 * r - tail - low;
}

/// The points of this launch's run: run 0 leaves x as it is, the others take it from their own `starts`.
template <int DX, int DY, int DZ>
__device__ Cloud<DX, DY, DZ> cloud_of_run(const float* x, const float* y, const float* z, const int* starts, int n,
                                          int length) {
    const int blocks = (n + length - 1) / length, run = blockIdx.y;
    return {x, y, z, n, run == 0 ? nullptr : starts + static_cast<long long>(run - 1) * blocks, length};
}

template <int DX, int DY, int DZ>
__global__ void __launch_bounds__(THREADS)
    ksg_minima(const float* x, const float* y, const float* z, const int* starts, float* minima, int n, int length,
               int group, int splits) {
    const long long groups = (n + group - 1) / group;
    find_minima(cloud_of_run<DX, DY, DZ>(x, y, z, starts, n, length), splits, group, minima + blockIdx.y * n * groups);
}

/// eps: the distance of the K-th neighbour, NaN for a point that is not finite. A warp for each point. With SIDES, which
/// has no z, what the K nearest span instead: half a rectangle's sides in x, then in y, each one step up, so that nearer
/// than that is at most as far.
template <int DX, int DY, int DZ, int K, bool SIDES = false>
__global__ void __launch_bounds__(THREADS)
    ksg_radii(const float* x, const float* y, const float* z, const int* starts, const float* minima, float* eps, int n,
              int length, int group) {
    const int i = static_cast<int>(blockIdx.x * (THREADS / 32) + threadIdx.x / 32);
    if (i >= n) return;
    const long long groups = (n + group - 1) / group, run = blockIdx.y;
    const auto points = cloud_of_run<DX, DY, DZ>(x, y, z, starts, n, length);
    Nearest<K, SIDES> nearest;
    const bool finite = find_nearest(points, minima + (run * n + i) * groups, group, i, nearest);
    if (threadIdx.x % 32 > 0) return;
    if constexpr (!SIDES) {
        eps[run * n + i] = finite ? nearest.distance[K - 1] : undefined();
    } else {
        float own[DX + DY], other[DX + DY], in_x = 0.0f, in_y = 0.0f;
        points.read(i, own);
#pragma unroll
        for (int q = 0; q < K; ++q) {
            const bool there = nearest.index[q] >= 0;
            if (there) points.read(nearest.index[q], other);
            in_x = fmaxf(in_x, there ? distance<0, DX>(own, other) : infinity());
            in_y = fmaxf(in_y, there ? distance<DX, DX + DY>(own, other) : infinity());
        }
        eps[i] = finite ? nextafterf(in_x, infinity()) : undefined();
        eps[n + i] = finite ? nextafterf(in_y, infinity()) : undefined();
    }
}

/// Counts of points nearer than eps, as floats (exact up to 2^24): the unit that adds them is otherwise idle.
struct Counts {
    float xz = 0.0f, yz = 0.0f, z = 0.0f;
};

/// counts[space][point] += neighbours (and the point itself where eps > 0) nearer than eps in xz, yz and z. The
/// differences of z serve all three; nothing branches. `counts` begins at 0. With SIDES, yz has radii of its own, behind
/// those of xz.
template <int DX, int DY, int DZ, bool SIDES = false>
__global__ void __launch_bounds__(THREADS)
    ksg_counts(const float* x, const float* y, const float* z, const int* starts, const float* eps, int* counts, int n,
               int length, int group, int splits) {
    constexpr int D = DX + DY + DZ;
    using Points = Cloud<DX, DY, DZ>;
    const Points points = cloud_of_run<DX, DY, DZ>(x, y, z, starts, n, length);
    const PairShare share(n, splits, group);
    const Own<Points> own(points, share.first_point);
    const long long first = static_cast<long long>(blockIdx.y) * n;
    float radius[POINTS], side[POINTS];
    Counts found[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; ++p) {
        radius[p] = own.place[p] < n ? eps[first + own.place[p]] : 0.0f;
        side[p] = SIDES && own.place[p] < n ? eps[n + own.place[p]] : radius[p];
    }
    visit_tiles(points, share, [&](const float* tile, int) {
#pragma unroll 4
        for (int j = 0; j < TILE; ++j) {
            float other[D];
            read_point(tile + j * Points::PITCH, other);
#pragma unroll
            for (int p = 0; p < POINTS; ++p) {
                const bool near = DZ == 0 || distance<DX + DY, D>(own.at[p], other) < radius[p];
                const bool near_xz = near & (distance<0, DX>(own.at[p], other) < radius[p]);
                const bool near_yz = near & (distance<DX, DX + DY>(own.at[p], other) < side[p]);
                if (DZ > 0 && near) found[p].z += 1.0f;
                if (near_xz) found[p].xz += 1.0f;
                if (near_yz) found[p].yz += 1.0f;
            }
        }
    });
    int* const to = counts + 3 * first;
#pragma unroll
    for (int p = 0; p < POINTS; ++p) {
        if (own.place[p] >= n) continue;
        atomicAdd(to + own.place[p], static_cast<int>(found[p].xz));
        atomicAdd(to + n + own.place[p], static_cast<int>(found[p].yz));
        if (DZ > 0) atomicAdd(to + 2 * static_cast<long long>(n) + own.place[p], static_cast<int>(found[p].z));
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
               - digamma_of(max(1, own[0] - self + beyond)) - digamma_of(max(1, own[n] - self + beyond));
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

// The share of runs that reach the one of the points as they are, itself counted: (1 + #{I_s >= I}) / (1 + surrogates).
extern "C" __global__ void __launch_bounds__(256)
    ksg_significance(const float* estimates, float* estimate, float* p_value, int surrogates) {
    int reached = 0;
    for (int s = threadIdx.x; s < surrogates; s += blockDim.x) reached += estimates[s + 1] >= estimates[0];
    const int all = block_reduce(reached, Sum{}, 0);
    if (threadIdx.x > 0) return;
    *estimate = estimates[0];
    *p_value = (1.0f + all) / (1.0f + surrogates);
}
