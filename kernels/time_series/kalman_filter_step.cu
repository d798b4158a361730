// One predict-and-update step of many Kalman filters, a group of WARPS warps each, everything in shared memory. All
// products have the form C = A^T B with A and B stored depth-major, so that both are read along rows, several floats at
// once: transposes are stored where a product needs them, and covariances are symmetric. ROWS x 4 outputs a thread.

#include "reduce.cuh"
#include "vector_load.cuh"

__device__ inline int padded(int n) { return (n + 3) / 4 * 4; }

/// The threads that share a filter. A warp of its own waits for itself, more are a whole block.
template <int WARPS>
struct Group {
    int thread = threadIdx.x % SIZE;
    static constexpr int SIZE = 32 * WARPS;

    __device__ void sync() const {
        if constexpr (WARPS == 1) __syncwarp();
        else __syncthreads();
    }
};

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
template <int ROWS, class G, class Store>
__device__ void multiply(const G& group, Matrix a, Matrix b, int rows, int cols, int depth, Store store) {
    const int across = (cols + 3) / 4, tiles = (rows + ROWS - 1) / ROWS * across;
    for (int t = group.thread; t < tiles; t += G::SIZE) {
        const int row = t / across * ROWS, col = t % across * 4;
        float sum[ROWS][4] = {};
#pragma unroll 4
        for (int k = 0; k < depth; ++k) {
            const float4 right = load4(&b.at(k, col));
            const float* const left = &a.at(k, row);
            float own[ROWS];
            if constexpr (ROWS == 4) {
                const float4 v = load4(left);
                own[0] = v.x, own[1] = v.y, own[2] = v.z, own[3] = v.w;
            } else {
                const float2 v = *reinterpret_cast<const float2*>(left);
                own[0] = v.x, own[1] = v.y;
            }
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                sum[i][0] = fmaf(own[i], right.x, sum[i][0]);
                sum[i][1] = fmaf(own[i], right.y, sum[i][1]);
                sum[i][2] = fmaf(own[i], right.z, sum[i][2]);
                sum[i][3] = fmaf(own[i], right.w, sum[i][3]);
            }
        }
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (row + i < rows && col + j < cols) store(row + i, col + j, sum[i][j]);
    }
    group.sync();
}

/// f(i, j) for all elements of a rows x cols matrix, neighbours in a row by neighbouring threads.
template <class G, class F>
__device__ void for_each(const G& group, int rows, int cols, F f) {
    for (int e = group.thread; e < rows * cols; e += G::SIZE) f(e / cols, e % cols);
    group.sync();
}

/// Both triangles become their mean.
template <class G>
__device__ void symmetrise(const G& group, Matrix a, int n) {
    for_each(group, n, n, [&](int i, int j) {
        if (i < j) a.at(i, j) = a.at(j, i) = 0.5f * (a.at(i, j) + a.at(j, i));
    });
}

/// S = L L^T in place, L below and on the diagonal: 0, or the number of the first pivot that is not positive.
template <class G>
__device__ int factorise(const G& group, Matrix s, int m) {
    for (int c = 0; c < m; ++c) {
        const float pivot = s.at(c, c);
        group.sync();
        if (!(pivot > 0.0f) || isinf(pivot)) return c + 1;
        const float scale = rsqrtf(pivot), root = sqrtf(pivot);
        for (int i = c + group.thread; i < m; i += G::SIZE) s.at(i, c) = i == c ? root : s.at(i, c) * scale;
        group.sync();
        const int left = m - c - 1;
        for (int e = group.thread; e < left * left; e += G::SIZE) {
            const int i = c + 1 + e / left, j = c + 1 + e % left;
            if (j <= i) s.at(i, j) = fmaf(-s.at(i, c), s.at(j, c), s.at(i, j));
        }
        group.sync();
    }
    return 0;
}

/// x = S^-1 x for a column x, its elements `apart` floats from each other.
__device__ inline void solve(Matrix s, int m, float* x, int apart) {
    for (int i = 0; i < m; ++i) {
        float value = x[i * apart];
        for (int k = 0; k < i; ++k) value = fmaf(-s.at(i, k), x[k * apart], value);
        x[i * apart] = value / s.at(i, i);
    }
    for (int i = m - 1; i >= 0; --i) {
        float value = x[i * apart];
        for (int k = i + 1; k < m; ++k) value = fmaf(-s.at(k, i), x[k * apart], value);
        x[i * apart] = value / s.at(i, i);
    }
}

struct Filter {
    const float *x, *p, *z, *f, *h, *q, *r;
    float *x_next, *p_next, *likelihood;
    int* status;
    int n, m;
};

/// Predicted state and covariance, from F^T and P; `work` is as large as P.
template <int ROWS, class G>
__device__ void predict(const G& group, const Filter& own, Matrix ft, Matrix p, Matrix work, float* x) {
    const int n = own.n;
    for_each(group, n, n, [&](int i, int j) { ft.at(j, i) = own.f[i * n + j], p.at(i, j) = own.p[i * n + j]; });
    symmetrise(group, p, n);
    for (int i = group.thread; i < n; i += G::SIZE) {
        float sum = 0.0f;
        for (int k = 0; k < n; ++k) sum = fmaf(ft.at(k, i), own.x[k], sum);
        x[i] = sum;
    }
    multiply<ROWS>(group, p, ft, n, n, n, [&](int i, int j, float v) { work.at(i, j) = v; });
    multiply<ROWS>(group, ft, work, n, n, n, [&](int i, int j, float v) { p.at(i, j) = v + own.q[i * n + j]; });
    symmetrise(group, p, n);
}

/// Joseph's form: P = A P A^T + K R K^T with A = I - K H; `at` and `work` are as large as P, `rk` as K^T.
template <int ROWS, class G>
__device__ void contract(const G& group, const Filter& own, Matrix p, Matrix h, Matrix kt, Matrix r, Matrix at,
                         Matrix work, Matrix rk) {
    const int n = own.n, m = own.m;
    multiply<ROWS>(group, h, kt, n, n, m, [&](int i, int j, float v) { at.at(i, j) = (i == j ? 1.0f : 0.0f) - v; });
    for_each(group, m, m, [&](int a, int b) { r.at(a, b) = 0.5f * (own.r[a * m + b] + own.r[b * m + a]); });
    multiply<ROWS>(group, r, kt, m, n, m, [&](int a, int j, float v) { rk.at(a, j) = v; });
    multiply<ROWS>(group, p, at, n, n, n, [&](int i, int j, float v) { work.at(i, j) = v; });
    multiply<ROWS>(group, at, work, n, n, n, [&](int i, int j, float v) { p.at(i, j) = v; });
    multiply<ROWS>(group, kt, rk, n, n, m, [&](int i, int j, float v) { p.at(i, j) += v; });
    symmetrise(group, p, n);
}

/// The measurement's part. 0; -1 where the measurement is missing; else the pivot at which S failed.
template <int ROWS, class G>
__device__ int update(const G& group, const Filter& own, Room room, Matrix p, Matrix at, Matrix work, float* x) {
    const int n = own.n, m = own.m;
    const Matrix h = room.matrix(m, n), kt = room.matrix(m, n), rk = room.matrix(m, n);
    const Matrix ht = room.matrix(n, m), wt = room.matrix(n, m), s = room.matrix(m, m);
    float *const y = room.vector(m), *const solved = room.vector(m);
    bool missing = false;
    for (int a = 0; a < m; ++a) missing = missing || isnan(own.z[a]);
    if (missing) return -1;
    for_each(group, m, n, [&](int a, int k) { h.at(a, k) = ht.at(k, a) = own.h[a * n + k]; });
    for (int a = group.thread; a < m; a += G::SIZE) {
        float sum = own.z[a];
        for (int k = 0; k < n; ++k) sum = fmaf(-ht.at(k, a), x[k], sum);
        y[a] = solved[a] = sum;
    }
    multiply<ROWS>(group, p, ht, n, m, n, [&](int k, int a, float v) { wt.at(k, a) = kt.at(a, k) = v; });
    multiply<ROWS>(group, ht, wt, m, m, n, [&](int a, int b, float v) { s.at(a, b) = v + own.r[a * m + b]; });
    symmetrise(group, s, m);
    const int failed = factorise(group, s, m);
    if (failed != 0) return failed;
    for (int j = group.thread; j <= n; j += G::SIZE) solve(s, m, j < n ? kt.data + j : solved, j < n ? kt.pitch : 1);
    group.sync();
    if (group.thread == 0) {
        float sum = 0.0f;
        for (int a = 0; a < m; ++a) sum += fmaf(y[a], solved[a], 2.0f * logf(s.at(a, a)) + 1.8378770664f);
        *own.likelihood = -0.5f * sum;
    }
    for (int i = group.thread; i < n; i += G::SIZE)
        for (int a = 0; a < m; ++a) x[i] = fmaf(kt.at(a, i), y[a], x[i]);
    group.sync();
    contract<ROWS>(group, own, p, h, kt, s, at, work, rk);
    return 0;
}

// `each` is 1 where every filter has its own F, H, Q and R, 0 where they share them.
template <int WARPS, int ROWS>
__global__ void __launch_bounds__(WARPS == 1 ? 128 : 32 * WARPS)
    kalman_filter_step(const float* x, const float* p, const float* z, const float* f, const float* h, const float* q,
                       const float* r, float* x_next, float* p_next, float* likelihood, int* status, int filters, int n,
                       int m, int each, int room) {
    extern __shared__ float4 shared[];
    const Group<WARPS> group;
    const int slot = threadIdx.x / Group<WARPS>::SIZE;
    const long long own = static_cast<long long>(blockIdx.x) * (blockDim.x / Group<WARPS>::SIZE) + slot;
    if (own >= filters) return;
    const long long model = each ? own : 0;
    const Filter filter = {x + own * n, p + own * n * n, z + own * m, f + model * n * n, h + model * m * n,
                           q + model * n * n, r + model * m * m, x_next + own * n, p_next + own * n * n,
                           likelihood + own, status + own, n, m};
    Room place = {reinterpret_cast<float*>(shared) + slot * room};
    if (n % 4 != 0 || m % 4 != 0)  // products read up to the next multiple of 4
        for_each(group, 1, room, [&](int, int k) { place.next[k] = 0.0f; });
    const Matrix ft = place.matrix(n, n), cov = place.matrix(n, n), work = place.matrix(n, n);
    float* const state = place.vector(n);
    predict<ROWS>(group, filter, ft, cov, work, state);
    const int result = update<ROWS>(group, filter, place, cov, ft, work, state);
    const float bad = __int_as_float(0x7fc00000);
    if (group.thread == 0) {
        *filter.status = result;
        if (result != 0) *filter.likelihood = result > 0 ? bad : 0.0f;
    }
    for (int i = group.thread; i < n; i += Group<WARPS>::SIZE) filter.x_next[i] = result > 0 ? bad : state[i];
    for_each(group, n, n, [&](int i, int j) { filter.p_next[i * n + j] = result > 0 ? bad : cov.at(i, j); });
}
