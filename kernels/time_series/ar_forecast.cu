#include "sums/reduce.cuh"
#include "arrays/vector_load.cuh"

// y[t] = c + sum over i = 1..p of phi[i-1] y[t-i], one thread per series, lag 1 first. The last P values stand in a
// ring of registers whose slots are known when the loop is unrolled; shared memory turns the series' outputs into rows.

constexpr int WARP = 32, WARPS = 4;

/// The ring holds a multiple of four values, so that four steps always begin at the same slots.
template <int P>
struct Ring {
    static constexpr int SIZE = (P + 3) / 4 * 4;
    static constexpr int CHUNK = 64 / SIZE * SIZE, QUADS = CHUNK / 4;
    static constexpr int PITCH = CHUNK + 4;
    float value[SIZE];

    __device__ void take(int slot, float4 v) {
        value[slot] = v.x, value[slot + 1] = v.y, value[slot + 2] = v.z, value[slot + 3] = v.w;
    }

    /// Four steps from `slot` on; old terms first, so that four sums run side by side.
    __device__ float4 step4(int slot, const float (&phi)[P], float intercept) {
        float next[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) next[q] = intercept;
#pragma unroll
        for (int lag = P; lag > 0; --lag)
#pragma unroll
            for (int q = 0; q < 4; ++q)
                if (lag > q) next[q] = fmaf(phi[lag - 1], value[(slot + q - lag + 2 * SIZE) % SIZE], next[q]);
#pragma unroll
        for (int q = 1; q < 4; ++q)
#pragma unroll
            for (int lag = q; lag > 0; --lag)
                if (lag <= P) next[q] = fmaf(phi[lag - 1], next[q - lag], next[q]);
        const float4 out = make_float4(next[0], next[1], next[2], next[3]);
        take(slot, out);
        return out;
    }
};

/// The last P values of the warp's series, turned through `stage` into each lane's ring; slots before them stay unused.
template <int P>
__device__ void load_history(const float* history, int rows, int length, float* stage, Ring<P>& ring) {
    using R = Ring<P>;
    const int lane = threadIdx.x % WARP;
    const long long wide = length;
    const float* const from = history + length - P;
    if (P % 4 == 0 && length % 4 == 0) {
        float4 ahead[R::SIZE / 4];
#pragma unroll
        for (int i = 0; i < P / 4; ++i) {
            const int at = lane + i * WARP, row = at / (R::SIZE / 4), col = at % (R::SIZE / 4) * 4;
            ahead[i] = row < rows ? load4(from + row * wide + col) : float4{};
        }
#pragma unroll
        for (int i = 0; i < P / 4; ++i) {
            const int at = lane + i * WARP;
            store4(stage + at / (R::SIZE / 4) * R::PITCH + at % (R::SIZE / 4) * 4, ahead[i]);
        }
    } else {
        for (int i = lane; i < WARP * P; i += WARP) {
            const int row = i / P, col = i % P;
            stage[row * R::PITCH + R::SIZE - P + col] = row < rows ? from[row * wide + col] : 0.0f;
        }
    }
    __syncwarp();
#pragma unroll
    for (int slot = 0; slot < R::SIZE; ++slot)
        ring.value[slot] = slot < R::SIZE - P ? 0.0f : stage[lane * R::PITCH + slot];
    __syncwarp();
}

/// Writes the first `count` columns of the staged chunk to the rows of `forecast`; a whole chunk without a question.
template <int P>
__device__ void store_chunk(const float* stage, float* forecast, int rows, int horizon, int count) {
    using R = Ring<P>;
    const int lane = threadIdx.x % WARP;
    const long long wide = horizon;
    if (WARP % R::QUADS == 0 && horizon % 4 == 0 && rows == WARP && count == R::CHUNK) {
        constexpr int APART = WARP / R::QUADS;
        const float* const from = stage + lane / R::QUADS * R::PITCH + lane % R::QUADS * 4;
        float* const to = forecast + lane / R::QUADS * wide + lane % R::QUADS * 4;
#pragma unroll
        for (int i = 0; i < R::QUADS; ++i) store4(to + i * APART * wide, load4(from + i * APART * R::PITCH));
    } else if (horizon % 4 == 0) {
#pragma unroll 2
        for (int i = 0; i < R::QUADS; ++i) {
            const int at = lane + i * WARP, row = at / R::QUADS, col = at % R::QUADS * 4;
            if (row < rows && col < count) store4(forecast + row * wide + col, load4(stage + row * R::PITCH + col));
        }
    } else {
        for (int i = lane; i < WARP * R::CHUNK; i += WARP) {
            const int row = i / R::CHUNK, col = i % R::CHUNK;
            if (row < rows && col < count) forecast[row * wide + col] = stage[row * R::PITCH + col];
        }
    }
}

// OWN says that every series has coefficients of its own.
template <int P, bool OWN>
__global__ void __launch_bounds__(WARP * WARPS, OWN ? 2 : P <= 16 ? 5 : P <= 32 ? 6 : 2)
ar_forecast(const float* history, const float* coefficients, float* forecast, float intercept, int series, int length,
            int lags, int horizon) {
    using R = Ring<P>;
    __shared__ __align__(16) float stages[WARPS][WARP * R::PITCH];
    const int warp = threadIdx.x / WARP, first = (blockIdx.x * WARPS + warp) * WARP;
    const int rows = min(WARP, series - first);
    float* const stage = stages[warp];
    if (rows <= 0) return;
    float phi[P];
    Ring<P> ring;
    if constexpr (OWN) load_history<P>(coefficients + static_cast<long long>(first) * P, rows, P, stage, ring);
#pragma unroll
    for (int i = 0; i < P; ++i) phi[i] = OWN ? ring.value[R::SIZE - P + i] : __ldg(coefficients + i);
    load_history<P>(history + static_cast<long long>(first) * length, rows, length, stage, ring);
    float* to = forecast + static_cast<long long>(first) * horizon;
    float* const mine = stage + threadIdx.x % WARP * R::PITCH;
    for (int done = 0; done < horizon; done += R::CHUNK, to += R::CHUNK) {
        const int count = min(R::CHUNK, horizon - done);
        for (int turn = 0; turn < count; turn += R::SIZE) {
#pragma unroll
            for (int slot = 0; slot < R::SIZE; slot += 4) store4(mine + turn + slot, ring.step4(slot, phi, intercept));
        }
        __syncwarp();
        store_chunk<P>(stage, to, rows, horizon, count);
        __syncwarp();
    }
}

/// Any number of lags: the past is read back from memory.
template <bool OWN>
__global__ void ar_forecast_long(const float* history, const float* coefficients, float* forecast, float intercept,
                                 int series, int length, int lags, int horizon) {
    const long long at = grid_thread();
    if (at >= series) return;
    if (OWN) coefficients += at * lags;
    const float* const past = history + (at + 1) * length;
    float* const mine = forecast + at * horizon;
    for (int step = 0; step < horizon; ++step) {
        float next = intercept;
        for (int lag = lags; lag > 0; --lag)
            next = fmaf(coefficients[lag - 1], lag > step ? past[step - lag] : mine[step - lag], next);
        mine[step] = next;
    }
}

// A few long series: steps in chunks. The state at a chunk's beginning is the last one's by the companion matrix, with the
// intercept as one more coordinate, to the power of the chunk's length; then all chunks go on side by side.

constexpr int MOST_LAGS = 31, STEPS = 32;  // a lane for each coordinate; steps that a warp turns into rows at a time

/// to = a b, by all threads of the block; matrices of `size` rows of 32.
__device__ inline void multiply_square(const double* a, const double* b, double* to, int size) {
    for (int i = threadIdx.x; i < size * WARP; i += blockDim.x) {
        double sum = 0.0;
        for (int k = 0; k < size; ++k) sum = fma(a[i / WARP * WARP + k], b[k * WARP + i % WARP], sum);
        to[i] = i % WARP < size ? sum : 0.0;
    }
    __syncthreads();
}

/// Calls store(i, state) for i < count and goes on by the matrix; a coordinate a lane, by all lanes of a warp.
template <class Store>
__device__ void walk_states(const double* matrix, int size, double state, int count, Store store) {
    const int lane = threadIdx.x % WARP;
    for (int i = 0; i < count; ++i) {
        store(i, state);
        double next = 0.0;
#pragma unroll 4
        for (int k = 0; k < size; ++k) {
            const double other = __shfl_sync(FULL_WARP, state, k);
            if (lane < size) next = fma(matrix[lane * WARP + k], other, next);
        }
        state = next;
    }
}

// states[series, chunk, lag]: the values before the chunk, the latest first. One warp walks from each STRIDE-th chunk to the
// next, then all warps between them.
extern "C" __global__ void __launch_bounds__(256)
    ar_chunk_states(const float* history, const float* coefficients, double* states, float intercept, int length, int lags,
                    int steps, int chunks) {
    constexpr int DOUBLINGS = 5, STRIDE = 1 << DOUBLINGS;
    __shared__ double first[WARP * WARP], second[WARP * WARP], third[WARP * WARP];
    double *power = first, *result = second, *spare = third;
    const int size = lags + 1, lane = threadIdx.x % WARP;
    for (int i = threadIdx.x; i < WARP * WARP; i += blockDim.x) {
        const int row = i / WARP, col = i % WARP;
        power[i] = row == 0 && col < lags ? coefficients[col] : row == 0 && col == lags ? intercept : 0.0;
        if (row > 0 && row < lags && col == row - 1) power[i] = 1.0;
        if (row == lags && col == lags) power[i] = 1.0;
        result[i] = row == col ? 1.0 : 0.0;
    }
    __syncthreads();
    const auto multiply = [&](double*& a, const double* b) {  // a = a b
        multiply_square(a, b, spare, size);
        double* const old = a;
        a = spare, spare = old;
    };
    for (int left = steps; left > 0; left /= 2) {
        if (left % 2 > 0) multiply(result, power);
        multiply(power, power);
    }
    for (int i = threadIdx.x; i < size * WARP; i += blockDim.x) power[i] = result[i];
    __syncthreads();
    for (int i = 0; i < DOUBLINGS; ++i) multiply(power, power);
    const int strides = (chunks + STRIDE - 1) / STRIDE;
    double* const own = states + static_cast<long long>(blockIdx.x) * chunks * lags;
    const auto store = [&](int chunk, double state) {
        if (lane < lags) own[static_cast<long long>(chunk) * lags + lane] = state;
    };
    if (threadIdx.x < WARP) {
        const float* const past = history + (blockIdx.x + 1ll) * length;
        const double begin = lane < lags ? past[-1 - lane] : lane == lags ? 1.0 : 0.0;
        walk_states(power, size, begin, strides, [&](int i, double state) { store(i * STRIDE, state); });
    }
    __syncthreads();
    for (int stride = threadIdx.x / WARP; stride < strides; stride += blockDim.x / WARP) {
        const int chunk = stride * STRIDE;
        const double begin = lane < lags ? own[static_cast<long long>(chunk) * lags + lane] : lane == lags ? 1.0 : 0.0;
        walk_states(result, size, begin, min(STRIDE, chunks - chunk),
                    [&](int i, double state) { if (i > 0) store(chunk + i, state); });
    }
}

// A chunk each thread, a warp a block.
template <int P>
__global__ void __launch_bounds__(WARP)
    ar_chunks(const double* states, const float* coefficients, float* forecast, float intercept, int steps, int chunks,
              int horizon) {
    __shared__ float turned[WARP][STEPS + 1];
    const int lane = threadIdx.x, chunk = blockIdx.x * WARP + lane, first = blockIdx.x * WARP;
    const double* const own = states + (static_cast<long long>(blockIdx.y) * chunks + min(chunk, chunks - 1)) * P;
    float* const to = forecast + static_cast<long long>(blockIdx.y) * horizon;
    float phi[P], past[P];
#pragma unroll
    for (int i = 0; i < P; ++i) phi[i] = __ldg(coefficients + i), past[i] = static_cast<float>(own[i]);
    for (int begin = 0; begin < steps; begin += STEPS) {
        for (int step = 0; step < STEPS; ++step) {
            float next = intercept;
#pragma unroll
            for (int i = P; i > 0; --i) next = fmaf(phi[i - 1], past[i - 1], next);
#pragma unroll
            for (int i = P - 1; i > 0; --i) past[i] = past[i - 1];
            turned[lane][step] = past[0] = next;
        }
        __syncwarp();
        for (int row = 0; row < WARP && first + row < chunks; ++row) {
            const long long at = static_cast<long long>(first + row) * steps + begin + lane;
            if (begin + lane < steps && at < horizon) to[at] = turned[row][lane];
        }
        __syncwarp();
    }
}
