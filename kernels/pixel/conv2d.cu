#include "vector_load.cuh"

// Y[i, j] = sum over u, v of T[u, v] X[i s + u - p, j s + v - p], zero outside the image (the taps are not flipped).

constexpr int WIDTH = 4;  // neighbouring columns of a thread

/// All K x K taps, in registers.
template <int K_>
struct Taps {
    static constexpr int K = K_;
    float tap[K][K];

    __device__ explicit Taps(const float* taps) {
#pragma unroll
        for (int u = 0; u < K; ++u)
#pragma unroll
            for (int v = 0; v < K; ++v) tap[u][v] = __ldg(taps + u * K + v);
    }

    __device__ void prepare(float (&)[K + WIDTH - 1]) const {}

    /// Adds what the row `x` gives through tap row u.
    __device__ void add(int u, const float (&x)[K + WIDTH - 1], float (&sum)[WIDTH]) const {
#pragma unroll
        for (int v = 0; v < K; ++v)
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) sum[c] = fmaf(tap[u][v], x[c + v], sum[c]);
    }
};

/// Taps that are a column times a row: 2 K products instead of K^2.
template <int K_>
struct SeparableTaps {
    static constexpr int K = K_;
    float down[K], across[K];

    __device__ SeparableTaps(const float* column, const float* row) {
#pragma unroll
        for (int u = 0; u < K; ++u) down[u] = __ldg(column + u), across[u] = __ldg(row + u);
    }

    /// Leaves in the first WIDTH places the row's sums across.
    __device__ void prepare(float (&x)[K + WIDTH - 1]) const {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            float total = 0.0f;
#pragma unroll
            for (int v = 0; v < K; ++v) total = fmaf(across[v], x[c + v], total);
            x[c] = total;
        }
    }

    __device__ void add(int u, const float (&x)[K + WIDTH - 1], float (&sum)[WIDTH]) const {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) sum[c] = fmaf(down[u], x[c], sum[c]);
    }
};

/// The input rows of a strip, one after the other; zeros outside the image.
template <int K, bool ALIGNED>
struct Source {
    const float* at;  // the first of the thread's columns, in row `row`
    int row, end, cols, first;

    __device__ Source(const float* x, int row, int end, int cols, int first)
        : at(x + static_cast<long long>(row) * cols + first), row(row), end(end), cols(cols), first(first) {}

    __device__ void next(float (&to)[K + WIDTH - 1]) {
        if (row >= 0 && row < end) {
            if constexpr (ALIGNED) read_vectors(to);
            else read_singles(to);
        } else {
#pragma unroll
            for (int i = 0; i < K + WIDTH - 1; ++i) to[i] = 0.0f;
        }
        ++row;
        at += cols;
    }

    __device__ void read_singles(float (&to)[K + WIDTH - 1]) const {
#pragma unroll
        for (int i = 0; i < K + WIDTH - 1; ++i)
            to[i] = static_cast<unsigned int>(first + i) < static_cast<unsigned int>(cols) ? __ldg(at + i) : 0.0f;
    }

    /// A centred window: the thread's own columns, from first + HALF, are 16-byte aligned; a group of four on each side.
    __device__ void read_vectors(float (&to)[K + WIDTH - 1]) const {
        constexpr int HALF = K / 2;
        const float4* const own = reinterpret_cast<const float4*>(at + HALF);
        const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        const float4 left = first + HALF > 0 ? __ldg(own - 1) : zero;
        const float4 here = __ldg(own);
        const float4 right = first + HALF + WIDTH < cols ? __ldg(own + 1) : zero;
        const float all[12] = {left.x, left.y, left.z,  left.w,  here.x,  here.y,
                               here.z, here.w, right.x, right.y, right.z, right.w};
#pragma unroll
        for (int i = 0; i < K + WIDTH - 1; ++i) to[i] = all[4 - HALF + i];
    }
};

/// A thread's part of a strip: WIDTH columns, going down. K outputs are under way, each in the slot of its row modulo K,
/// and two input rows are fetched ahead.
template <class T, bool ALIGNED>
struct Strip {
    static constexpr int K = T::K, SPAN = K + WIDTH - 1;
    const T taps;
    Source<K, ALIGNED> source;
    float sum[K][WIDTH], near[SPAN], far[SPAN];
    float* to;
    int left, cols, out_cols;  // output rows still to write; columns of this thread; the row's length

    __device__ Strip(const T& taps, const Source<K, ALIGNED>& source, float* to, int left, int cols, int out_cols)
        : taps(taps), source(source), to(to), left(left), cols(cols), out_cols(out_cols) {
        this->source.next(near);
        this->source.next(far);
    }

    /// The next K input rows. In the FIRST K, no output above the strip is begun; after the LAST, none below it.
    template <bool FIRST, bool LAST>
    __device__ void advance() {
#pragma unroll
        for (int j = 0; j < (LAST ? K - 1 : K); ++j) {
            float x[SPAN];
#pragma unroll
            for (int i = 0; i < SPAN; ++i) x[i] = near[i], near[i] = far[i];
            source.next(far);
            taps.prepare(x);
            if constexpr (!LAST) {
#pragma unroll
                for (int c = 0; c < WIDTH; ++c) sum[j][c] = 0.0f;
            }
#pragma unroll
            for (int u = 0; u < K; ++u)
                if ((!FIRST || u <= j) && (!LAST || u > j)) taps.add(u, x, sum[(j - u + K) % K]);
            if (!FIRST || j == K - 1) write(sum[(j + 1) % K]);
        }
    }

    __device__ void write(const float (&row)[WIDTH]) {
        if (left > 0) {
            if constexpr (ALIGNED) {
                store4_streamed(to, make_float4(row[0], row[1], row[2], row[3]));
            } else {
#pragma unroll
                for (int c = 0; c < WIDTH; ++c)
                    if (c < cols) to[c] = row[c];
            }
        }
        --left;
        to += out_cols;
    }
};

/// Stride 1. A block walks one strip of rows; gridDim.y strips share the output, in whole groups of K rows.
template <class T, bool ALIGNED>
__device__ void walk_strip(const T& taps, const float* x, float* y, int rows, int cols, int out_rows, int out_cols,
                           int padding) {
    constexpr int K = T::K;
    const int col = WIDTH * (blockIdx.x * blockDim.x + threadIdx.x);
    const int groups = (out_rows + gridDim.y * K - 1) / (gridDim.y * K);
    const int first = blockIdx.y * groups * K;
    if (col >= out_cols || first >= out_rows) return;
    const int end = min(rows, first + groups * K + K - 1 - padding);
    Strip<T, ALIGNED> strip(taps, Source<K, ALIGNED>(x, first - padding, end, cols, col - padding),
                            y + static_cast<long long>(first) * out_cols + col, min(groups * K, out_rows - first),
                            out_cols - col, out_cols);
    strip.template advance<true, false>();
#pragma unroll 1
    for (int group = 1; group < groups; ++group) strip.template advance<false, false>();
    strip.template advance<false, true>();
}

template <int K, bool ALIGNED>
__global__ void __launch_bounds__(128, ALIGNED ? 4 : 3)
    conv2d(const float* __restrict__ x, const float* __restrict__ taps, float* __restrict__ y, int rows, int cols,
           int out_rows, int out_cols, int k, int stride, int padding) {
    walk_strip<Taps<K>, ALIGNED>(Taps<K>(taps), x, y, rows, cols, out_rows, out_cols, padding);
}

template <int K, bool ALIGNED>
__global__ void __launch_bounds__(128, ALIGNED ? 4 : 3)
    conv2d_separable(const float* __restrict__ x, const float* __restrict__ column, const float* __restrict__ row,
                     float* __restrict__ y, int rows, int cols, int out_rows, int out_cols, int padding) {
    walk_strip<SeparableTaps<K>, ALIGNED>(SeparableTaps<K>(column, row), x, y, rows, cols, out_rows, out_cols, padding);
}

// Any k, stride and padding: one thread per output.
extern "C" __global__ void conv2d_any(const float* __restrict__ x, const float* __restrict__ taps,
                                      float* __restrict__ y, int rows, int cols, int out_rows, int out_cols, int k,
                                      int stride, int padding) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= out_cols) return;
    const int left = j * stride - padding;
    const int v_begin = max(0, -left), v_end = min(k, cols - left);
    for (int i = blockIdx.y * blockDim.y + threadIdx.y; i < out_rows; i += gridDim.y * blockDim.y) {
        const int top = i * stride - padding;
        float sum = 0.0f;
        for (int u = max(0, -top); u < min(k, rows - top); ++u) {
            const float* const row = x + static_cast<long long>(top + u) * cols + left;
            for (int v = v_begin; v < v_end; ++v) sum = fmaf(__ldg(taps + u * k + v), __ldg(row + v), sum);
        }
        y[static_cast<long long>(i) * out_cols + j] = sum;
    }
}
