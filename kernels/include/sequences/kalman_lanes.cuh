#pragma once

#include "sequences/kalman.cuh"

// Small filters, N lanes each: a lane holds one column of every matrix in registers. What all lanes need (the model,
// P-'s and K's rows in turn) is broadcast from shared memory, so a product is N multiplications a load of 16 bytes
// serves four of. Sizes are padded with zeros to N states and M measurements, the noise R with a one on its diagonal.

/// Floats of shared memory: rows are 4 apart from N or M, and what two filters of a warp read lies in different banks.
template <int N, int M>
struct LaneRoom {
    static constexpr int WIDE = N + 4, NARROW = M + 4, TURN = N + 1;
    static constexpr int MODEL = N * WIDE + M * WIDE + M * NARROW + 16;
    static constexpr int FILTER = N * TURN + M * WIDE + N + 16;
};

template <int N, int M>
struct Lanes {
    using Room = LaneRoom<N, M>;
    float *f, *h, *r;               // the model's, in rows
    float *turn, *rows, *broadcast;  // the filter's: N x N to be turned, M x N, and N
    int lane;

    __device__ Lanes(float* model, float* own)
        : f(model), h(f + N * Room::WIDE), r(h + M * Room::WIDE), turn(own), rows(turn + N * Room::TURN),
          broadcast(rows + M * Room::WIDE), lane(threadIdx.x % N) {}

    /// The model into shared memory, by `threads` threads.
    __device__ void take_model(const Filter& own, int thread, int threads) const {
        for (int e = thread; e < N * N; e += threads) {
            const int i = e / N, k = e % N;
            f[i * Room::WIDE + k] = i < own.n && k < own.n ? own.f[i * own.n + k] : 0.0f;
            if (i < M) h[i * Room::WIDE + k] = i < own.m && k < own.n ? own.h[i * own.n + k] : 0.0f;
        }
        for (int e = thread; e < M * M; e += threads) {
            const int a = e / M, b = e % M;
            const bool inside = a < own.m && b < own.m;
            r[a * Room::NARROW + b] = inside ? 0.5f * (own.r[a * own.m + b] + own.r[b * own.m + a]) : a == b ? 1.0f : 0.0f;
        }
    }

    /// out = A v for a matrix in shared memory, the same for all lanes.
    template <int ROWS, int COLS>
    __device__ static void apply(const float* a, int pitch, const float (&v)[COLS], float (&out)[ROWS]) {
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < COLS; k += 4) {
                const float4 four = load4(a + i * pitch + k);
                sum = fmaf(four.x, v[k], sum), sum = fmaf(four.y, v[k + 1], sum);
                sum = fmaf(four.z, v[k + 2], sum), sum = fmaf(four.w, v[k + 3], sum);
            }
            out[i] = sum;
        }
    }

    /// out -= sum over a of v[a] times row a of `rows`.
    __device__ void subtract_rows(const float (&v)[M], float (&out)[N]) const {
#pragma unroll
        for (int a = 0; a < M; ++a)
#pragma unroll
            for (int i = 0; i < N; i += 4) {
                const float4 four = load4(rows + a * Room::WIDE + i);
                out[i] = fmaf(-v[a], four.x, out[i]), out[i + 1] = fmaf(-v[a], four.y, out[i + 1]);
                out[i + 2] = fmaf(-v[a], four.z, out[i + 2]), out[i + 3] = fmaf(-v[a], four.w, out[i + 3]);
            }
    }

    /// The sum over k of this lane's row of `a` (shared, pitch WIDE) times element k of the vector that lanes hold.
    __device__ float row_times(const float* a, int row, float x) const {
        __syncwarp();
        broadcast[lane] = x;
        __syncwarp();
        float own[N], sum = 0.0f;
        read_row(a, row, own);
#pragma unroll
        for (int k = 0; k < N; ++k) sum = fmaf(own[k], broadcast[k], sum);
        return sum;
    }

    __device__ static void read_row(const float* a, int row, float (&to)[N]) {
#pragma unroll
        for (int k = 0; k < N; k += 4) {
            const float4 four = load4(a + row * Room::WIDE + k);
            to[k] = four.x, to[k + 1] = four.y, to[k + 2] = four.z, to[k + 3] = four.w;
        }
    }

    /// Columns become rows.
    __device__ void turn_around(float (&v)[N]) const {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < N; ++i) turn[i * Room::TURN + lane] = v[i];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] = turn[lane * Room::TURN + i];
    }

    /// A matrix becomes the mean of itself and its transpose.
    __device__ void symmetrise(float (&v)[N]) const {
        float turned[N];
#pragma unroll
        for (int i = 0; i < N; ++i) turned[i] = v[i];
        turn_around(turned);
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] = 0.5f * (v[i] + turned[i]);
    }

    /// Rows of an M x N matrix, whose columns lanes hold, for all to read.
    __device__ void share_rows(const float (&v)[M]) const {
        __syncwarp();
#pragma unroll
        for (int a = 0; a < M; ++a) rows[a * Room::WIDE + lane] = v[a];
        __syncwarp();
    }
};

/// S = L L^T in the registers of all lanes of a filter: L below the diagonal, the diagonal's reciprocals beside it.
template <int N, int M>
struct Root {
    float below[M][M], reciprocal[M];
    float diagonal = 1.0f;  // this lane's own
    int failed = 0;         // the number of the first pivot that is not positive

    /// From row `lane` of S in each of the first M lanes.
    __device__ explicit Root(float (&s)[M]) {
        const int lane = threadIdx.x % N;
#pragma unroll
        for (int c = 0; c < M; ++c) {
            const float pivot = __shfl_sync(FULL_WARP, s[c], c, N);
            if (failed == 0 && (!(pivot > 0.0f) || isinf(pivot))) failed = c + 1;
            reciprocal[c] = rsqrtf(pivot);
            s[c] *= reciprocal[c];
            if (lane == c) diagonal = s[c];
#pragma unroll
            for (int j = c + 1; j < M; ++j) {
                below[j][c] = __shfl_sync(FULL_WARP, s[c], j, N);
                s[j] = fmaf(-s[c], below[j][c], s[j]);
            }
        }
    }

    __device__ void forward(float (&x)[M]) const {
#pragma unroll
        for (int a = 0; a < M; ++a) {
#pragma unroll
            for (int c = 0; c < a; ++c) x[a] = fmaf(-below[a][c], x[c], x[a]);
            x[a] *= reciprocal[a];
        }
    }

    __device__ void backward(float (&x)[M]) const {
#pragma unroll
        for (int a = M - 1; a >= 0; --a) {
#pragma unroll
            for (int c = a + 1; c < M; ++c) x[a] = fmaf(-below[c][a], x[c], x[a]);
            x[a] *= reciprocal[a];
        }
    }
};

/// The sum over a filter's lanes, in all of them.
template <int N>
__device__ float sum_of_lanes(float value) {
#pragma unroll
    for (int mask = N / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(FULL_WARP, value, mask);
    return value;
}

/// Predicted covariance (column `lane`) and, returned, state.
template <int N, int M>
__device__ float predict(const Lanes<N, M>& lanes, const Filter& own, float (&p)[N]) {
    using Room = LaneRoom<N, M>;
    const int n = own.n, j = lanes.lane;
    float column[N];
#pragma unroll
    for (int i = 0; i < N; ++i) column[i] = i < n && j < n ? own.p[i * n + j] : 0.0f;
    Lanes<N, M>::apply(lanes.f, Room::WIDE, column, p);
    lanes.turn_around(p);
#pragma unroll
    for (int i = 0; i < N; ++i) column[i] = p[i];
    Lanes<N, M>::apply(lanes.f, Room::WIDE, column, p);
#pragma unroll
    for (int i = 0; i < N; ++i) p[i] += i < n && j < n ? own.q[i * n + j] : 0.0f;
    lanes.symmetrise(p);
    return lanes.row_times(lanes.f, j, j < n ? own.x[j] : 0.0f) + (j < n ? own.control(j) : 0.0f);
}

/// The measurement's part. With W = H P-, U = P- - K W is (I - K H) P-, and Joseph's form U (I - K H)^T + K R K^T is
/// U - (U H^T - K R) K^T. As update() of a group says, what it returns.
template <int N, int M>
__device__ int update(const Lanes<N, M>& lanes, const Filter& own, float (&p)[N], float& x, float& likelihood) {
    using Room = LaneRoom<N, M>;
    const int m = own.m, lane = lanes.lane, a = lane % M;
    const bool measured = lane < m;
    const float z = measured ? own.z[lane] : 0.0f;
    float w[M], row[N], s[M], noise[M], y[M], k[M];
    Lanes<N, M>::apply(lanes.h, Room::WIDE, p, w);
    lanes.share_rows(w);
    Lanes<N, M>::read_row(lanes.rows, a, row);
    Lanes<N, M>::apply(lanes.h, Room::WIDE, row, s);
#pragma unroll
    for (int b = 0; b < M; ++b) s[b] += lanes.r[a * Room::NARROW + b];
    const float innovation = z - lanes.row_times(lanes.h, a, x);
    own.keep_innovation(lane, innovation, s);
    const Root<N, M> root(s);
#pragma unroll
    for (int b = 0; b < M; ++b) {
        const float one = __shfl_sync(FULL_WARP, innovation, b, N);
        y[b] = b < m ? one : 0.0f, k[b] = w[b];
    }
    root.forward(k);
    root.backward(k);
    float next = x;
#pragma unroll
    for (int b = 0; b < M; ++b) next = fmaf(k[b], y[b], next);
    root.forward(y);
    float energy = 0.0f;
#pragma unroll
    for (int b = 0; b < M; ++b) energy = fmaf(y[b], y[b], energy);
    const float logs = sum_of_lanes<N>(measured ? 2.0f * logf(root.diagonal) + 1.8378770664f : 0.0f);
    float u[N], g[M];
#pragma unroll
    for (int i = 0; i < N; ++i) u[i] = p[i];
    lanes.subtract_rows(k, u);
    Lanes<N, M>::apply(lanes.h, Room::WIDE, u, g);
    Lanes<N, M>::apply(lanes.r, Room::NARROW, k, noise);
#pragma unroll
    for (int b = 0; b < M; ++b) g[b] -= noise[b];
    lanes.share_rows(k);
    lanes.subtract_rows(g, u);
    lanes.symmetrise(u);
    const unsigned int group = N == 32 ? FULL_WARP : ((1u << (N % 32)) - 1) << threadIdx.x % 32 / N * N;
    if ((__ballot_sync(FULL_WARP, isnan(z)) & group) != 0) return -1;
    if (root.failed != 0) return root.failed;
#pragma unroll
    for (int i = 0; i < N; ++i) p[i] = u[i];
    x = next;
    likelihood = -0.5f * (energy + logs);
    return 0;
}
