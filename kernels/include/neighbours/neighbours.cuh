#pragma once

#include "sums/reduce.cuh"

// Nearest neighbours in the maximum norm, by brute force in two steps. First the smallest distance from every point to
// every group of neighbours: a loop without a branch. The K nearest of a point lie in the K + 1 groups with the smallest
// minima (one of them may be the point's own), so that only these are looked at again, one warp for each point.
// blockIdx.x counts blocks of points times `splits` shares of the neighbours, blockIdx.y the runs (surrogates).
// A point with a coordinate that is not finite has no neighbour and is none.

constexpr int TILE = 128, THREADS = 128, POINTS = 4;  // neighbours in shared memory, threads, points of a thread

__device__ inline float undefined() { return __int_as_float(0x7fc00000); }

/// n points of DX + DY + DZ coordinates from three arrays. Row i of x is that of point starts[i / length] + i % length,
/// modulo n, where there are `starts`: one start is a circular shift, several are blocks in another order.
template <int DX, int DY, int DZ>
struct Cloud {
    static constexpr int D = DX + DY + DZ, PITCH = D < 3 ? D : (D + 3) / 4 * 4;
    const float *x, *y, *z;
    int n;
    const int* starts = nullptr;
    int length = 1;

    __device__ long long source(int i) const {
        if (starts == nullptr) return i;
        const long long from = static_cast<long long>(starts[i / length]) + i % length;
        return from < n ? from : from - n;
    }

    /// Point i; infinities if it is not finite or there is none. True where it is finite.
    __device__ bool read(int i, float (&to)[D]) const {
        bool finite = i < n;
        if (finite) {
            const long long from = source(i), same = i;
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

/// The points that a thread owns, THREADS apart.
template <class Points>
struct Own {
    float at[POINTS][Points::D];
    int place[POINTS];

    __device__ Own(const Points& points, int first) {
#pragma unroll
        for (int p = 0; p < POINTS; ++p) {
            place[p] = first + p * THREADS + static_cast<int>(threadIdx.x);
            points.read(place[p], at[p]);
        }
    }
};

/// What a block looks at: POINTS points a thread from `first_point` on, and whole groups of neighbours.
struct PairShare {
    int first_point, begin, end;

    __device__ PairShare(int n, int splits, int group) {
        first_point = blockIdx.x / splits * (THREADS * POINTS);
        const long long groups = (n + group - 1) / group, length = (groups + splits - 1) / splits * group;
        const long long from = blockIdx.x % splits * length;
        begin = static_cast<int>(from < n ? from : n);
        end = static_cast<int>(from + length < n ? from + length : n);
    }
};

/// Calls f(tile, first) for tiles of the share's neighbours, `first` and those that follow; the last one is filled up
/// with points at infinity. All threads of the block call it.
template <class Points, class F>
__device__ void visit_tiles(const Points& points, const PairShare& share, F f) {
    __shared__ __align__(16) float tile[TILE * Points::PITCH];
    for (int first = share.begin; first < share.end; first += TILE) {
        for (int j = threadIdx.x; j < TILE; j += THREADS) {
            float point[Points::D];
            points.read(first + j < share.end ? first + j : points.n, point);
#pragma unroll
            for (int d = 0; d < Points::PITCH; ++d) tile[j * Points::PITCH + d] = d < Points::D ? point[d] : 0.0f;
        }
        __syncthreads();
        f(tile, first);
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

/// The largest of three floats that are not negative, which are in order as integers too: one instruction for both.
__device__ inline float largest(float a, float b, float c) {
    return __int_as_float(max(max(__float_as_int(a), __float_as_int(b)), __float_as_int(c)));
}

__device__ inline float smallest(float a, float b, float c) {
    return __int_as_float(min(min(__float_as_int(a), __float_as_int(b)), __float_as_int(c)));
}

/// The largest difference of the coordinates FIRST to LAST - 1; 0 where there are none.
template <int FIRST, int LAST, int D>
__device__ float distance(const float (&a)[D], const float (&b)[D]) {
    constexpr int PAIRS = (LAST - FIRST) / 2, TWICE = PAIRS == 0 ? 0 : (PAIRS - 1) / 2;
    const auto apart = [&](int d) { return fabsf(a[d] - b[d]); };
    const auto pair = [&](int d) { return fmaxf(apart(d), apart(d + 1)); };
    float most = PAIRS == 0 ? 0.0f : pair(FIRST);
#pragma unroll
    for (int d = FIRST + 2; d < FIRST + 2 + 4 * TWICE; d += 4) most = largest(most, pair(d), pair(d + 2));
#pragma unroll
    for (int d = FIRST + 2 + 4 * TWICE; d < LAST; ++d)
        if (PAIRS > 0) most = fmaxf(most, apart(d));
    return PAIRS == 0 && LAST > FIRST ? apart(FIRST) : most;
}

/// minima[point][group] of one run: the smallest distance from each point to the neighbours of each group, 0 to its own.
/// A group is a power of two from 32 on.
template <class Points>
__device__ void find_minima(const Points& points, int splits, int group, float* minima) {
    const PairShare share(points.n, splits, group);
    const Own<Points> own(points, share.first_point);
    const int bits = 31 - __clz(group), groups = (points.n + group - 1) >> bits, step = min(group, TILE);
    float least[POINTS] = {infinity(), infinity(), infinity(), infinity()};
    visit_tiles(points, share, [&](const float* tile, int first) {
        for (int begin = 0; begin < TILE && first + begin < share.end; begin += step) {
#pragma unroll 2
            for (int j = begin; j < begin + step; j += 2) {
                float one[Points::D], two[Points::D];
                read_point(tile + j * Points::PITCH, one);
                read_point(tile + (j + 1) * Points::PITCH, two);
#pragma unroll
                for (int p = 0; p < POINTS; ++p)
                    least[p] = smallest(least[p], distance<0, Points::D>(own.at[p], one),
                                        distance<0, Points::D>(own.at[p], two));
            }
            const int end = first + begin + step;
            if ((end & (group - 1)) != 0 && end < share.end) continue;
#pragma unroll
            for (int p = 0; p < POINTS; ++p) {
                if (own.place[p] < points.n)
                    minima[static_cast<long long>(own.place[p]) * groups + (end - 1 >> bits)] = least[p];
                least[p] = infinity();
            }
        }
    });
}

/// The K smallest distances so far, in order; of equal ones the lower index is first, where there are indices.
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

    __device__ void offer(float d, int j) {
        if (INDICES ? d > distance[K - 1] : d >= distance[K - 1]) return;
        bool shift = false;
#pragma unroll
        for (int q = 0; q < K; ++q) {
            const float held = distance[q];
            shift = shift || d < held || (INDICES && d == held && j < index[INDICES ? q : 0]);
            distance[q] = shift ? d : held;
            d = shift ? held : d;
            if constexpr (INDICES) {
                const int held_index = index[q];
                index[q] = shift ? j : held_index;
                j = shift ? held_index : j;
            }
        }
    }

    __device__ void drop_first() {
#pragma unroll
        for (int q = 0; q < K; ++q) distance[q] = q + 1 < K ? distance[q + 1 < K ? q + 1 : q] : infinity();
        if constexpr (INDICES)
#pragma unroll
            for (int q = 0; q < K; ++q) index[q] = q + 1 < K ? index[q + 1 < K ? q + 1 : q] : -1;
    }
};

/// A distance, by its bits, and who is at it: in the order of both.
struct Candidate {
    static constexpr int NOWHERE = 0x7f800000;
    int distance, who;

    /// The first of the warp's, in all lanes.
    __device__ Candidate first_of_warp() const {
        const int lowest = __reduce_min_sync(FULL_WARP, distance);
        return {lowest, __reduce_min_sync(FULL_WARP, distance == lowest ? who : 0x7fffffff)};
    }
};

/// The first of `groups` groups after `last`, in the order of their minima, in all lanes of the warp.
__device__ inline Candidate next_group(const float* minima, int groups, Candidate last) {
    Candidate first = {Candidate::NOWHERE, 0x7fffffff};
#pragma unroll 4
    for (int g = threadIdx.x % 32; g < groups; g += 32) {
        const int here = __float_as_int(minima[g]);
        const bool later = (here > last.distance) | ((here == last.distance) & (g > last.who));
        const bool nearer = later & (here < first.distance);
        first.distance = nearer ? here : first.distance;
        first.who = nearer ? g : first.who;
    }
    return first.first_of_warp();
}

/// The K nearest of point i from its row of `minima`, in all lanes of the warp. False if the point is not finite.
template <class Points, int K, bool INDICES>
__device__ bool find_nearest(const Points& points, const float* minima, int group, int i, Nearest<K, INDICES>& nearest) {
    __shared__ int chosen[THREADS / 32][K + 1];
    int* const own_groups = chosen[threadIdx.x / 32];
    const int groups = (points.n + group - 1) / group, lane = threadIdx.x % 32;
    int found = 0;
    Candidate last = {-1, -1};
    for (; found <= K; ++found) {
        last = next_group(minima, groups, last);
        if (last.distance == Candidate::NOWHERE) break;
        if (lane == 0) own_groups[found] = last.who;
    }
    __syncwarp();
    const float bound = __int_as_float(last.distance);  // K of the others are as near as that, if so many are found
    float own[Points::D];
    const bool finite = points.read(i, own);
    Nearest<K, INDICES> mine;
    for (int g = 0; g < found; ++g) {
#pragma unroll 2
        for (int t = lane; t < group; t += 32) {
            const int j = own_groups[g] * group + t;
            float other[Points::D];
            const bool there = points.read(j, other) & (j != i);
            const float d = distance<0, Points::D>(own, other);
            if (there & (d <= bound)) mine.offer(d, j);
        }
    }
#pragma unroll
    for (int q = 0; q < K; ++q) {
        const Candidate head = {__float_as_int(mine.distance[0]), INDICES ? mine.index[0] : lane};
        const Candidate first = head.first_of_warp();
        nearest.distance[q] = __int_as_float(first.distance);
        if constexpr (INDICES) nearest.index[q] = first.who;
        if (head.distance == first.distance && head.who == first.who) mine.drop_first();
    }
    return finite;
}
