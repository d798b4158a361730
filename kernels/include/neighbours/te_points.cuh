#pragma once

#include "neighbours/ksg.cuh"

// Neighbours by warps: a warp has OWN points, its lanes share the neighbours. For transfer entropy the coordinates, in the
// order of Cloud, are those of x's past, of y's future and of y's past. Samples are finite.

constexpr int TE_THREADS = 256, TE_TILE = TE_THREADS;

template <int D>
using PointTile = float (*)[D];

/// Points in shared memory, the same for every visit of a kernel.
template <int D>
__device__ PointTile<D> tile_of_points() {
    __shared__ float tile[TE_TILE][D];
    return tile;
}

/// Points of a warp and their coordinates, the same in all lanes. A cloud that fits in the tile is read once, and all visits
/// find it there: a problem of a few hundred points then waits for memory once.
template <class Points, int OWN>
struct WarpPoints {
    static constexpr int D = Points::D;
    float at[OWN][D];
    int first;

    __device__ WarpPoints(const Points& points) {
        first = (blockIdx.x * (TE_THREADS / 32) + threadIdx.x / 32) * OWN;
        if (points.n <= TE_TILE) {
            const PointTile<D> tile = fill(points, 0);
#pragma unroll
            for (int p = 0; p < OWN; ++p)
#pragma unroll
                for (int d = 0; d < D; ++d) at[p][d] = first + p < TE_TILE ? tile[first + p][d] : infinity();
        } else {
#pragma unroll
            for (int p = 0; p < OWN; ++p) points.read(first + p, at[p]);
        }
    }

    /// The tile with the points from `begin` on; infinities behind the last. All threads call it.
    __device__ static PointTile<D> fill(const Points& points, int begin) {
        const PointTile<D> tile = tile_of_points<D>();
        points.read(begin + threadIdx.x, tile[threadIdx.x]);
        __syncthreads();
        return tile;
    }

    /// Calls f(p, j, coordinates of j) for every own point and every neighbour of this lane; behind the last point are
    /// some at infinity. Only in a tile that has own points is one compared with itself. All threads call it.
    template <class F>
    __device__ void visit(const Points& points, F f) const {
        const PointTile<D> tile = tile_of_points<D>();
        for (int begin = 0; begin < points.n; begin += TE_TILE) {
            if (points.n > TE_TILE) {
                __syncthreads();
                fill(points, begin);
            }
            if (first + OWN > begin && first < begin + TE_TILE) visit_tile<true>(tile, begin, f);
            else visit_tile<false>(tile, begin, f);
        }
    }

    template <bool OWN_TILE, class F>
    __device__ void visit_tile(PointTile<D> tile, int begin, F f) const {
#pragma unroll 4
        for (int j = threadIdx.x % 32; j < TE_TILE; j += 32)
#pragma unroll
            for (int p = 0; p < OWN; ++p)
                if (!OWN_TILE || begin + j != first + p) f(p, begin + j, tile[j]);
    }
};

/// A lane's K smallest distances in order.
template <int K>
struct Smallest {
    float distance[K];

    __device__ Smallest() {
#pragma unroll
        for (int q = 0; q < K; ++q) distance[q] = infinity();
    }

    __device__ void offer(float d) {
        if (!(d < distance[K - 1])) return;
#pragma unroll
        for (int q = K - 1; q > 0; --q) distance[q] = d < distance[q - 1] ? distance[q - 1] : fminf(d, distance[q]);
        distance[0] = fminf(d, distance[0]);
    }

    /// The K-th smallest of the warp, in every lane; the lists are used up.
    __device__ float kth_of_warp() {
        float least = infinity();
#pragma unroll 1
        for (int taken = 0; taken < K; ++taken) {
            least = __int_as_float(__reduce_min_sync(FULL_WARP, __float_as_int(distance[0])));  // none is negative
            const unsigned int holders = __ballot_sync(FULL_WARP, distance[0] == least);
            if (static_cast<int>(threadIdx.x % 32) == __ffs(static_cast<int>(holders)) - 1) {
#pragma unroll
                for (int q = 0; q + 1 < K; ++q) distance[q] = distance[q + 1];
                distance[K - 1] = infinity();
            }
        }
        return least;
    }
};

/// eps of the warp's own points, in every lane: the K-th smallest of apart(p, coordinates of a neighbour).
template <int K, class Points, int OWN, class Apart>
__device__ void find_radii(const Points& points, const WarpPoints<Points, OWN>& own, Apart apart, float (&eps)[OWN]) {
    Smallest<K> nearest[OWN];
    own.visit(points, [&](int p, int, const float(&other)[Points::D]) { nearest[p].offer(apart(p, other)); });
#pragma unroll
    for (int p = 0; p < OWN; ++p) eps[p] = nearest[p].kth_of_warp();
}

/// The same in the space of all coordinates.
template <int K, class Points, int OWN>
__device__ void find_radii(const Points& points, const WarpPoints<Points, OWN>& own, float (&eps)[OWN]) {
    const auto apart = [&](int p, const float(&other)[Points::D]) { return distance<0, Points::D>(own.at[p], other); };
    find_radii<K>(points, own, apart, eps);
}

/// Neighbours strictly nearer than eps in y (future and past), in xz (both pasts) and in z (y's past).
struct NeighbourCounts {
    int y = 0, xz = 0, z = 0;
};

/// The counts of the warp's own points, in every lane. The differences of z serve all three spaces. Counts are sums of
/// floats, exact below 2^24 in a lane: that leaves more to the units that compare.
template <int DX, int DY, int OWN>
__device__ void count_neighbours(const Cloud<DX, 1, DY>& points, const WarpPoints<Cloud<DX, 1, DY>, OWN>& own,
                                 const float (&eps)[OWN], NeighbourCounts (&found)[OWN]) {
    float y[OWN] = {}, xz[OWN] = {}, z[OWN] = {};
    own.visit(points, [&](int p, int, const float(&other)[DX + 1 + DY]) {
        const bool near = distance<DX + 1, DX + 1 + DY>(own.at[p], other) < eps[p];
        z[p] += near ? 1.0f : 0.0f;
        xz[p] += near & (distance<0, DX>(own.at[p], other) < eps[p]) ? 1.0f : 0.0f;
        y[p] += near & (distance<DX, DX + 1>(own.at[p], other) < eps[p]) ? 1.0f : 0.0f;
    });
#pragma unroll
    for (int p = 0; p < OWN; ++p) {
        found[p].y = __reduce_add_sync(FULL_WARP, static_cast<int>(y[p]));
        found[p].xz = __reduce_add_sync(FULL_WARP, static_cast<int>(xz[p]));
        found[p].z = __reduce_add_sync(FULL_WARP, static_cast<int>(z[p]));
    }
}

/// A point's term: psi(k) - psi(n_y + 1) - psi(n_xz + 1) + psi(n_z + 1), in nats.
__device__ inline double te_term(int k, int n_y, int n_xz, int n_z) {
    return digamma_of(k) - digamma_of(n_y + 1) - digamma_of(n_xz + 1) + digamma_of(n_z + 1);
}

/// The mean of the terms of all points, in `mean`, by the last block to finish; `by_block` has room for all blocks. Lanes
/// take a term's four parts side by side: lane 4 p + s those of point p.
template <class Points, int OWN>
__device__ void mean_of_terms(const WarpPoints<Points, OWN>& own, const NeighbourCounts (&found)[OWN], double* by_block,
                              unsigned int* arrived, float* mean, int n, int k) {
    static_assert(OWN <= 8);
    const int lane = threadIdx.x % 32, which = lane % 4;
    int count = 0;
#pragma unroll
    for (int p = 0; p < OWN; ++p)
        if (lane / 4 == p && own.first + p < n)
            count = which == 0 ? found[p].y + 1 : which == 1 ? found[p].xz + 1 : which == 2 ? found[p].z + 1 : k;
    const double psi = count > 0 ? digamma_of(count) : 0.0;
    double total;
    if (grid_sum(which < 2 ? -psi : psi, by_block, arrived, &total)) *mean = static_cast<float>(total / n);
}
