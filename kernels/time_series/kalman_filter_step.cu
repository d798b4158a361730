// One predict-and-update step of many Kalman filters. Small ones have some lanes of a warp each (kalman_lanes.cuh), larger
// ones a block. There everything is in shared memory, and products have the form C = A^T B with A and B stored
// depth-major, so that both are read along rows, four floats at once: transposes are stored where a product needs them,
// and covariances are symmetric. 4 x 4 outputs a thread.

#include "sequences/kalman_lanes.cuh"

constexpr int THREADS = 256;

__device__ inline int padded(int n) { return (n + 3) / 4 * 4; }

/// A matrix in shared memory; rows are a multiple of 4 floats, 4 floats apart from the next power of two.
struct Matrix {
    float* data;
    int pitch;

    __device__ float& at(int i, int j) const { return data[i * pitch + j]; }
};

/// Matrices and vectors of one filter, one behind the other.
struct Room {
    float* next;

    __device__ Matrix matrix(int rows, int cols) {
        const Matrix made = {next, padded(cols) + 4};
        next += padded(rows) * made.pitch;
        return made;
    }
    __device__ float* vector(int length) {
        float* const made = next;
        next += padded(length);
        return made;
    }
};

/// store(i, j, (A^T B)_ij) for all rows x cols elements.
template <class Store>
__device__ void multiply(Matrix a, Matrix b, int rows, int cols, int depth, Store store) {
    const int across = (cols + 3) / 4, tiles = (rows + 3) / 4 * across;
    for (int t = threadIdx.x; t < tiles; t += THREADS) {
        const int row = t / across * 4, col = t % across * 4;
        float sum[4][4] = {};
#pragma unroll 4
        for (int k = 0; k < depth; ++k) {
            const float4 right = load4(&b.at(k, col)), left = load4(&a.at(k, row));
            const float own[4] = {left.x, left.y, left.z, left.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sum[i][0] = fmaf(own[i], right.x, sum[i][0]);
                sum[i][1] = fmaf(own[i], right.y, sum[i][1]);
                sum[i][2] = fmaf(own[i], right.z, sum[i][2]);
                sum[i][3] = fmaf(own[i], right.w, sum[i][3]);
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (row + i < rows && col + j < cols) store(row + i, col + j, sum[i][j]);
    }
    __syncthreads();
}

/// f(i, j) for all elements of a rows x cols matrix, a row by a warp.
template <class F>
__device__ void for_each(int rows, int cols, F f) {
    for (int i = threadIdx.x / 32; i < rows; i += THREADS / 32)
#pragma unroll 2
        for (int j = threadIdx.x % 32; j < cols; j += 32) f(i, j);
    __syncthreads();
}

/// Both triangles become their mean.
__device__ inline void symmetrise(Matrix a, int n) {
    for_each(n, n, [&](int i, int j) {
        if (i < j) a.at(i, j) = a.at(j, i) = 0.5f * (a.at(i, j) + a.at(j, i));
    });
}

/// S = L D L^T in place, both triangles, size x size: row and column c below the diagonal are D_c times those of L. 0, or the
/// number of the first pivot that is not positive.
__device__ inline int factorise(Matrix s, int size) {
    constexpr int ACROSS = 16, DOWN = THREADS / ACROSS;
    const int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS;
    for (int c = 0; c < size; ++c) {
        const float pivot = s.at(c, c);
        if (!(pivot > 0.0f) || isinf(pivot)) return c + 1;
        const float over = -1.0f / pivot;
        for (int i = c + 1 + y; i < size; i += DOWN) {
            const float scaled = s.at(i, c) * over;
            for (int j = c + 1 + x; j < size; j += ACROSS) s.at(i, j) = fmaf(scaled, s.at(c, j), s.at(i, j));
        }
        __syncthreads();
    }
    return 0;
}

constexpr int IN_REGISTERS = 32;

/// x = S^-1 x for a column x, its elements `apart` floats from each other. The square of D^-1/2 L^-1 x is returned: its
/// energy.
__device__ inline float solve_long(Matrix s, int m, float* x, int apart) {
    float energy = 0.0f;
    for (int c = 0; c < m; ++c) {
        const float scaled = x[c * apart] / s.at(c, c);
        energy = fmaf(scaled, x[c * apart], energy);
        for (int i = c + 1; i < m; ++i) x[i * apart] = fmaf(-s.at(c, i), scaled, x[i * apart]);
        x[c * apart] = scaled;
    }
    for (int c = m - 1; c >= 0; --c) {
        float sum = 0.0f;
        for (int i = c + 1; i < m; ++i) sum = fmaf(s.at(c, i), x[i * apart], sum);
        x[c * apart] -= sum / s.at(c, c);
    }
    return energy;
}

/// The same, in registers meanwhile, of an S that is filled up to IN_REGISTERS with the identity.
__device__ inline float solve(Matrix s, int m, float* x, int apart) {
    constexpr int M = IN_REGISTERS;
    float value[M], energy = 0.0f;
#pragma unroll
    for (int c = 0; c < M; ++c) value[c] = c < m ? x[c * apart] : 0.0f;
#pragma unroll
    for (int c = 0; c < M; ++c) {
        const float scaled = __fdividef(value[c], s.at(c, c));
        energy = fmaf(scaled, value[c], energy);
#pragma unroll
        for (int i = c + 1; i < M; ++i) value[i] = fmaf(-s.at(c, i), scaled, value[i]);
        value[c] = scaled;
    }
    __threadfence_block();  // the second walk reads S again: all of it in registers is too much
#pragma unroll
    for (int c = M - 1; c >= 0; --c) {
        float sum[4] = {};
#pragma unroll
        for (int i = c + 1; i < M; ++i) sum[i % 4] = fmaf(s.at(c, i), value[i], sum[i % 4]);
        value[c] -= __fdividef((sum[0] + sum[1]) + (sum[2] + sum[3]), s.at(c, c));
    }
#pragma unroll
    for (int c = 0; c < M; ++c)
        if (c < m) x[c * apart] = value[c];
    return energy;
}

/// Predicted state and covariance, from F^T and P; `work` is as large as P.
__device__ inline void predict(const Filter& own, Matrix ft, Matrix p, Matrix work, float* x) {
    const int n = own.n;
    for_each(n, n, [&](int i, int j) { ft.at(j, i) = own.f[i * n + j], p.at(i, j) = own.p[i * n + j]; });
    symmetrise(p, n);
    for (int i = threadIdx.x; i < n; i += THREADS) {
        float sum = own.control(i);
        for (int k = 0; k < n; ++k) sum = fmaf(ft.at(k, i), own.x[k], sum);
        x[i] = sum;
    }
    multiply(p, ft, n, n, n, [&](int i, int j, float v) { work.at(i, j) = v; });
    multiply(ft, work, n, n, n, [&](int i, int j, float v) { p.at(i, j) = v + own.q[i * n + j]; });
    symmetrise(p, n);
}

/// Joseph's form from W = H P- and K^T: U = P- - K W is (I - K H) P-, and P = U (I - K H)^T + K R K^T is
/// U - (U H^T - K R) K^T. `ut` is as large as P, `gt` as W.
__device__ inline void contract(const Filter& own, Matrix p, Matrix ht, Matrix w, Matrix kt, Matrix r, Matrix ut, Matrix gt) {
    const int n = own.n, m = own.m;
    multiply(kt, w, n, n, m, [&](int i, int j, float v) { ut.at(j, i) = p.at(i, j) - v; });
    for_each(m, m, [&](int a, int b) { r.at(a, b) = 0.5f * (own.r[a * m + b] + own.r[b * m + a]); });
    multiply(ut, ht, n, m, n, [&](int i, int a, float v) { gt.at(a, i) = v; });
    multiply(r, kt, m, n, m, [&](int a, int i, float v) { gt.at(a, i) -= v; });
    multiply(gt, kt, n, n, m, [&](int i, int j, float v) { p.at(i, j) = ut.at(j, i) - v; });
    symmetrise(p, n);
}

/// The measurement's part. 0; -1 where the measurement is missing; else the pivot at which S failed.
__device__ inline int update(const Filter& own, Room room, Matrix p, Matrix ut, float* x, float* likelihood) {
    const int n = own.n, m = own.m, size = max(m, IN_REGISTERS);
    const Matrix w = room.matrix(m, n), kt = room.matrix(m, n), gt = room.matrix(m, n);
    const Matrix ht = room.matrix(n, m), wt = room.matrix(n, m), s = room.matrix(size, size);
    float *const y = room.vector(m), *const solved = room.vector(m);
    int missing = 0;
    for (int a = threadIdx.x; a < m; a += THREADS) missing = missing || isnan(own.z[a]);
    missing = __syncthreads_or(missing);
    for_each(m, n, [&](int a, int k) { ht.at(k, a) = own.h[a * n + k]; });
    for (int a = threadIdx.x; a < m; a += THREADS) {
        float sum = own.z[a];
        for (int k = 0; k < n; ++k) sum = fmaf(-ht.at(k, a), x[k], sum);
        y[a] = solved[a] = sum;
    }
    multiply(p, ht, n, m, n, [&](int k, int a, float v) { wt.at(k, a) = w.at(a, k) = kt.at(a, k) = v; });
    for_each(size, size, [&](int a, int b) { s.at(a, b) = a == b ? 1.0f : 0.0f; });
    multiply(ht, wt, m, m, n, [&](int a, int b, float v) { s.at(a, b) = v + own.r[a * m + b]; });
    symmetrise(s, m);
    for (int a = threadIdx.x; a < m; a += THREADS) own.keep_innovation(a, y[a], &s.at(a, 0));
    __syncthreads();
    if (missing) return -1;
    const int failed = factorise(s, size);
    if (failed != 0) return failed;
    for (int j = threadIdx.x; j <= n; j += THREADS) {
        float* const column = j < n ? kt.data + j : solved;
        const int apart = j < n ? kt.pitch : 1;
        const float energy = m <= IN_REGISTERS ? solve(s, m, column, apart) : solve_long(s, m, column, apart);
        if (j < n) continue;
        float logs = 0.0f;
        for (int a = 0; a < m; ++a) logs += logf(s.at(a, a)) + 1.8378770664f;
        *likelihood = -0.5f * (energy + logs);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += THREADS)
        for (int a = 0; a < m; ++a) x[i] = fmaf(kt.at(a, i), y[a], x[i]);
    contract(own, p, ht, w, kt, s, ut, gt);
    return 0;
}

/// The arrays as the kernels' parameters, and as Filters.
#define FILTERS_PARAMETERS                                                                                             \
    const float *x, const float *p, const float *z, const float *f, const float *h, const float *q, const float *r,    \
        const float *b, const float *u, float *x_next, float *p_next, float *likelihood, float *innovation,            \
        float *deviation, int *status, int filters, int n, int m, int controls, int each, int keep

#define FILTERS_OF_PARAMETERS                                                                                          \
    Filters { {x, p, z, f, h, q, r, b, u, x_next, p_next, likelihood, keep ? innovation : nullptr, deviation, status,  \
               n, m, controls}, filters, each }

/// State and covariance: NaN where S was not positive definite.
extern "C" __global__ void __launch_bounds__(THREADS) kalman_block(FILTERS_PARAMETERS, int room) {
    extern __shared__ float4 shared[];
    const Filter own = FILTERS_OF_PARAMETERS[blockIdx.x];
    Room place = {reinterpret_cast<float*>(shared)};
    if (n % 4 != 0 || m % 4 != 0)  // products read up to the next multiple of 4
        for (int k = threadIdx.x; k < room; k += THREADS) place.next[k] = 0.0f;
    __syncthreads();
    const Matrix ft = place.matrix(n, n), cov = place.matrix(n, n), work = place.matrix(n, n);
    float* const state = place.vector(n);
    predict(own, ft, cov, work, state);
    const int result = update(own, place, cov, work, state, own.likelihood);
    if (threadIdx.x == 0) {
        *own.status = result;
        if (result != 0) *own.likelihood = result > 0 ? not_known() : 0.0f;
    }
    for (int i = threadIdx.x; i < n; i += THREADS) own.x_next[i] = result > 0 ? not_known() : state[i];
    for_each(n, n, [&](int i, int j) { own.p_next[i * n + j] = result > 0 ? not_known() : cov.at(i, j); });
}

/// The same by N lanes each, filters after filters. Where sizes are EXACT nothing is filled up.
template <int N, int M, bool EACH, bool EXACT>
__global__ void __launch_bounds__(128) kalman_lanes(FILTERS_PARAMETERS) {
    using Room = LaneRoom<N, M>;
    constexpr int AT_ONCE = 128 / N, MODELS = EACH ? AT_ONCE : 1;
    __shared__ __align__(16) float models[MODELS][Room::MODEL], rooms[AT_ONCE][Room::FILTER];
    if constexpr (EXACT) n = N, m = M;
    const Filters all = FILTERS_OF_PARAMETERS;
    const int slot = threadIdx.x / N, i = threadIdx.x % N, batches = (filters + AT_ONCE - 1) / AT_ONCE;
    const Lanes<N, M> lanes(models[EACH ? slot : 0], rooms[slot]);
    if constexpr (!EACH) lanes.take_model(all.first, threadIdx.x, 128);
    __syncthreads();
    for (int batch = blockIdx.x; batch < batches; batch += gridDim.x) {
        const long long mine = static_cast<long long>(batch) * AT_ONCE + slot;
        Filter own = all[mine < filters ? mine : filters - 1];
        if (mine >= filters) own.innovation = nullptr;
        if constexpr (EACH) lanes.take_model(own, i, N);
        __syncwarp();
        float cov[N], log_likelihood = 0.0f;
        float state = predict(lanes, own, cov);
        const int result = update(lanes, own, cov, state, log_likelihood);
        if (mine < filters && i == 0) *own.status = result, *own.likelihood = result > 0 ? not_known() : log_likelihood;
        if (mine < filters && i < n) {
            own.x_next[i] = result > 0 ? not_known() : state;
#pragma unroll
            for (int k = 0; k < N; ++k)
                if (k < n) own.p_next[k * n + i] = result > 0 ? not_known() : cov[k];
        }
        __syncwarp();
    }
}
