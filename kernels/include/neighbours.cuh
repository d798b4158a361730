#pragma once

#include "reduce.cuh"

// Nearest neighbours in the maximum norm, by brute force: points lie in a tile of shared memory, a thread owns POINTS
// points in registers. blockIdx.x counts groups of points times `splits` shares of the neighbours, blockIdx.y the
// shifts of x against the other coordinates (surrogates). A point with a coordinate that is not finite has no neighbour
// and is none.

constexpr int TILE = 128, THREADS = 128;

__device__ inline float undefined() { return __int_as_float(0x7fc00000); }

/// n points of DX + DY + DZ coordinates from three arrays; row i of x is that of point i + shift, modulo n.
template <int DX, int DY, int DZ>
struct Cloud {
    static constexpr int D = DX + DY + DZ, PITCH = D < 3 ? D : (D + 3) / 4 * 4;
    const float *x, *y, *z;
    int n, shift;

    /// Point i; infinities if it is not finite or there is none. True where it is finite.
    __device__ bool read(int i, float (&to)[D]) const {
        bool finite = i < n;
        if (finite) {
            const long long from = i + shift < n ? i + shift : i + shift - n, same = i;
#pragma unroll
            for (int d = 0; d < DX; ++d) to[d] = x[from * DX + d];
#pragma unroll
            for (int d = 0; d < DY; ++d) to[DX + d] = y[same * DY + d];
#pragma unroll
            for (int d = 0; d < DZ; ++d) to[DX + DY + d] = z[same * DZ + d];
#pragma unroll
            for (int d = 0; d < D; ++d) finite = finite && isfinite(to[d]);
        }
#pragma unroll
        for (int d = 0; d < D; ++d) to[d] = finite ? to[d] : infinity();
        return finite;
    }
};

/// The neighbours that a block looks at, handed out tile by tile.
struct Share {
    int first_point, begin, end, split;

    __device__ Share(int n, int splits, int points) {
        split = blockIdx.x % splits;
        first_point = blockIdx.x / splits * points;
        const int length = (n + splits - 1) / splits;
        begin = min(n, split * length);
        end = min(n, begin + length);
    }
};

/// Calls f(other, j) for every neighbour j of the share; `other` are its coordinates. All threads of the block call it.
template <class Points, class F>
__device__ void visit_neighbours(const Points& points, const Share& share, F f) {
    __shared__ __align__(16) float tile[TILE * Points::PITCH];
    for (int first = share.begin; first < share.end; first += TILE) {
        const int count = min(TILE, share.end - first);
        for (int j = threadIdx.x; j < count; j += blockDim.x) {
            float point[Points::D];
            points.read(first + j, point);
#pragma unroll
            for (int d = 0; d < Points::PITCH; ++d) tile[j * Points::PITCH + d] = d < Points::D ? point[d] : 0.0f;
        }
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < count; ++j) f(tile + j * Points::PITCH, first + j);
        __syncthreads();
    }
}

/// The coordinates of a tile's point: 16 bytes a load, the same for all lanes.
template <int D>
__device__ void read_point(const float* from, float (&to)[D]) {
#pragma unroll
    for (int d = 0; d < D; d += 4) {
        if (D - d > 2) {
            const float4 v = *reinterpret_cast<const float4*>(from + d);
            const float part[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int k = 0; k < 4 && d + k < D; ++k) to[d + k] = part[k];
        } else {
#pragma unroll
            for (int k = d; k < D; ++k) to[k] = from[k];
        }
    }
}

/// The largest difference of the coordinates FIRST to LAST - 1; 0 where there are none.
template <int FIRST, int LAST, int D>
__device__ float distance(const float (&a)[D], const float (&b)[D]) {
    if constexpr (FIRST == LAST) {
        return 0.0f;
    } else {
        float most = fabsf(a[FIRST] - b[FIRST]);
#pragma unroll
        for (int d = FIRST + 1; d < LAST; ++d) most = fmaxf(most, fabsf(a[d] - b[d]));
        return most;
    }
}

/// The K smallest distances so far, in order; of equal ones the neighbour that came first stays first.
template <int K, bool INDICES>
struct Nearest {
    float distance[K];
    int index[INDICES ? K : 1];

    __device__ Nearest() {
#pragma unroll
        for (int q = 0; q < K; ++q) distance[q] = infinity();
#pragma unroll
        for (int q = 0; q < (INDICES ? K : 1); ++q) index[q] = -1;
    }

    __device__ void insert(float d, int j) {
        bool shift = false;
#pragma unroll
        for (int q = 0; q < K; ++q) {
            shift = shift || d < distance[q];
            const float held = distance[q];
            distance[q] = shift ? d : held;
            d = shift ? held : d;
            if constexpr (INDICES) {
                const int held_index = index[q];
                index[q] = shift ? j : held_index;
                j = shift ? held_index : j;
            }
        }
    }
};

/// The K nearest of the share, for each point in `distances[split][q][point]` (and `indices`), NaN for a point that is
/// not finite; nearest_of_all merges them.
template <class Points, int K, bool INDICES, int POINTS>
__device__ void nearest_of_share(const Points& points, int splits, float* distances, int* indices) {
    const Share share(points.n, splits, THREADS * POINTS);
    float own[POINTS][Points::D];
    Nearest<K, INDICES> nearest[POINTS];
    int place[POINTS];
    bool finite[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; ++p) {
        place[p] = share.first_point + p * THREADS + static_cast<int>(threadIdx.x);
        finite[p] = points.read(place[p], own[p]);
    }
    visit_neighbours(points, share, [&](const float* from, int j) {
        float other[Points::D];
        read_point(from, other);
#pragma unroll
        for (int p = 0; p < POINTS; ++p) {
            const float d = distance<0, Points::D>(own[p], other);
            if (d < nearest[p].distance[K - 1] && j != place[p]) nearest[p].insert(d, j);
        }
    });
    const long long first = static_cast<long long>(blockIdx.y * splits + share.split) * K;
#pragma unroll
    for (int p = 0; p < POINTS; ++p)
#pragma unroll
        for (int q = 0; q < K; ++q)
            if (place[p] < points.n) {
                distances[(first + q) * points.n + place[p]] = finite[p] ? nearest[p].distance[q] : undefined();
                if constexpr (INDICES) indices[(first + q) * points.n + place[p]] = nearest[p].index[q];
            }
}

/// The K nearest of all shares for point i, in the order of the shares.
template <int K, bool INDICES>
__device__ Nearest<K, INDICES> nearest_of_all(const float* distances, const int* indices, int n, int splits, int i) {
    Nearest<K, INDICES> nearest;
    const long long first = static_cast<long long>(blockIdx.y) * splits * K;
#pragma unroll 4
    for (int q = 0; q < splits * K; ++q) {
        const long long at = (first + q) * n + i;
        const float d = distances[at];
        if (d < nearest.distance[K - 1]) nearest.insert(d, INDICES ? indices[at] : 0);
    }
    if (isnan(distances[first * n + i])) nearest.distance[K - 1] = undefined();
    return nearest;
}
