#include "layers/activations.cuh"
#include "convolution/float_window.cuh"
#include "convolution/half_convolution.cuh"
#include "convolution/streamed_convolution.cuh"
#include "arrays/vector_load.cuh"

// Y[i, j] = sum over u, v of T[u, v] X[i s + u - p, j s + v - p], zero outside the image (the taps are not flipped).
// Stride 1: a warp goes down a tile of 128 columns. It fetches BURST rows at once, a burst ahead, and passes them
// through shared memory, where each lane finds its neighbours' columns; a row is added to the K outputs it belongs to.

constexpr int WIDTH = 4, LANES = 32, ACROSS = WIDTH * LANES;  // columns of a thread and of a warp
constexpr int WARPS = 4;                                      // of a block, at most

/// All K x K taps, in registers: the widest window needs so many that only three blocks fit a multiprocessor.
template <int K_>
struct Taps {
    static constexpr int K = K_, SPAN = K + WIDTH - 1, BURST = K == 7 ? 6 : 10, BLOCKS = K == 7 ? 3 : 4;
    float tap[K][K];

    __device__ explicit Taps(const float* taps) {
#pragma unroll
        for (int u = 0; u < K; ++u)
#pragma unroll
            for (int v = 0; v < K; ++v) tap[u][v] = __ldg(taps + u * K + v);
    }

    __device__ void prepare(float (&)[SPAN]) const {}

    /// to = from + what the row `x` gives through tap row u.
    __device__ void add(int u, const float (&x)[SPAN], const float (&from)[WIDTH], float (&to)[WIDTH]) const {
#pragma unroll
        for (int v = 0; v < K; ++v)
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) to[c] = fmaf(tap[u][v], x[c + v], v == 0 ? from[c] : to[c]);
    }
};

/// Taps that are a column times a row: 2 K products instead of K^2.
template <int K_>
struct SeparableTaps {
    static constexpr int K = K_, SPAN = K + WIDTH - 1, BURST = 10, BLOCKS = 4;
    float down[K], across[K];

    __device__ SeparableTaps(const float* column, const float* row) {
#pragma unroll
        for (int u = 0; u < K; ++u) down[u] = __ldg(column + u), across[u] = __ldg(row + u);
    }

    /// Leaves in the first WIDTH places the row's sums across.
    __device__ void prepare(float (&x)[SPAN]) const {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            float total = 0.0f;
#pragma unroll
            for (int v = 0; v < K; ++v) total = fmaf(across[v], x[c + v], total);
            x[c] = total;
        }
    }

    __device__ void add(int u, const float (&x)[SPAN], const float (&from)[WIDTH], float (&to)[WIDTH]) const {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) to[c] = fmaf(down[u], x[c], from[c]);
    }
};

constexpr int PITCH = ACROSS + 2 * WIDTH;  // a row in shared memory: a group of four on each side of the warp's columns

/// The next BURST rows of the warp's columns on their way to shared memory; zeros outside the image. `first` is the
/// leftmost column of the window. Here the warp's own columns, from first + K / 2, begin on a 16-byte boundary.
template <int K, int BURST, bool ALIGNED>
struct Feed {
    static_assert(2 * BURST <= LANES, "a lane holds one group beside the warp's columns");
    const float *own, *edge;  // this lane's columns of row `row`; its group of those beside the warp's
    float4 next[BURST], beside;
    int row, end, cols;
    bool whole, has_own, has_edge;

    __device__ Feed(const float* x, int row, int end, int cols, int first) : row(row), end(end), cols(cols) {
        const int lane = threadIdx.x % LANES, begin = first + K / 2;
        const int mine = begin + WIDTH * lane, other = lane % 2 ? begin + ACROSS : begin - WIDTH;
        own = x + static_cast<long long>(row) * cols + mine;
        edge = x + static_cast<long long>(row + lane / 2) * cols + other;
        whole = begin + ACROSS <= cols;
        has_own = mine < cols;
        has_edge = lane < 2 * BURST && other >= 0 && other < cols;
    }

    __device__ bool inside(int at) const { return at >= 0 && at < end; }

    __device__ static float4 read(const float* from, bool there) {
        return there ? __ldg(reinterpret_cast<const float4*>(from)) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }

    __device__ void fetch() {
        const bool all = whole && row >= 0 && row + BURST <= end;  // the same for the warp: no lane decides
        if (all) {
#pragma unroll
            for (int k = 0; k < BURST; ++k, own += cols) next[k] = read(own, true);
        } else {
#pragma unroll
            for (int k = 0; k < BURST; ++k, own += cols) next[k] = read(own, has_own && inside(row + k));
        }
        beside = read(edge, has_edge && inside(row + threadIdx.x % LANES / 2));
        edge += static_cast<long long>(BURST) * cols;
        row += BURST;
    }

    __device__ void deliver(float* stage) const {
        const int lane = threadIdx.x % LANES;
#pragma unroll
        for (int k = 0; k < BURST; ++k) store4(stage + k * PITCH + WIDTH + WIDTH * lane, next[k]);
        if (lane < 2 * BURST) store4(stage + lane / 2 * PITCH + lane % 2 * (WIDTH + ACROSS), beside);
    }
};

/// Rows of any alignment, float by float.
template <int K, int BURST>
struct Feed<K, BURST, false> {
    static constexpr int EACH = (PITCH + LANES - 1) / LANES;
    const float* at;
    float next[BURST][EACH];
    int row, end, cols, first;

    __device__ Feed(const float* x, int row, int end, int cols, int first)
        : at(x + static_cast<long long>(row) * cols), row(row), end(end), cols(cols),
          first(first - (WIDTH - K / 2) + threadIdx.x % LANES) {}

    __device__ void fetch() {
#pragma unroll
        for (int k = 0; k < BURST; ++k, ++row, at += cols)
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                const int column = first + i * LANES;
                const bool there = row >= 0 && row < end && column >= 0 && column < cols;
                next[k][i] = there ? __ldg(at + column) : 0.0f;
            }
    }

    __device__ void deliver(float* stage) const {
        const int lane = threadIdx.x % LANES;
#pragma unroll
        for (int k = 0; k < BURST; ++k)
#pragma unroll
            for (int i = 0; i < EACH; ++i)
                if (lane + i * LANES < PITCH) stage[k * PITCH + lane + i * LANES] = next[k][i];
    }
};

/// Four outputs side by side, and those that the input rows so far have begun: sum[i] is complete i + 1 rows on.
template <class T>
struct Window {
    static constexpr int K = T::K;
    float sum[K - 1][WIDTH] = {}, done[WIDTH];

    /// Adds the staged row to all it belongs to; `done` is complete then. Each first product moves its sum one row on.
    __device__ void add(const T& taps, const float* stage) {
        const float* const at = stage + WIDTH * (threadIdx.x % LANES);
        const float4 left = load4(at), own = load4(at + WIDTH), right = load4(at + 2 * WIDTH);
        const float all[12] = {left.x, left.y, left.z,  left.w,  own.x,   own.y,
                               own.z,  own.w,  right.x, right.y, right.z, right.w};
        float x[T::SPAN];
#pragma unroll
        for (int i = 0; i < T::SPAN; ++i) x[i] = all[WIDTH - K / 2 + i];
        taps.prepare(x);
        taps.add(K - 1, x, sum[0], done);
#pragma unroll
        for (int i = 0; i < K - 2; ++i) taps.add(K - 2 - i, x, sum[i + 1], sum[i]);
        const float zero[WIDTH] = {};
        taps.add(0, x, zero, sum[K - 2]);
    }

    template <bool ALIGNED>
    __device__ void write(float* to, int columns) const {
        if constexpr (ALIGNED) {
            if (columns > 0) store4(to, make_float4(done[0], done[1], done[2], done[3]));
        } else {
#pragma unroll
            for (int c = 0; c < WIDTH; ++c)
                if (c < columns) to[c] = done[c];
        }
    }
};

/// gridDim.y tiles share the output's rows, in as many whole bursts as it takes; neighbours have K - 1 rows in common.
template <class T, bool ALIGNED>
__device__ void walk_tile(const T& taps, const float* x, float* y, int rows, int cols, int out_rows, int out_cols,
                          int padding) {
    constexpr int K = T::K, BURST = T::BURST;
    __shared__ __align__(16) float stages[WARPS][BURST * PITCH];
    const int warp = threadIdx.x / LANES, begin = ACROSS * (blockIdx.x * (blockDim.x / LANES) + warp);
    const int share = (out_rows + gridDim.y - 1) / gridDim.y;
    const int height = (share + K - 1 + BURST - 1) / BURST * BURST - (K - 1);
    const int first = blockIdx.y * height, last = min(out_rows, first + height);
    if (begin >= out_cols || first >= out_rows) return;
    Feed<K, BURST, ALIGNED> feed(x, first - padding, min(rows, last + K - 1 - padding), cols, begin - padding);
    feed.fetch();
    Window<T> window;
    const int col = begin + WIDTH * (threadIdx.x % LANES);
    float* to = y + static_cast<long long>(first - (K - 1)) * out_cols + col;
#pragma unroll 1
    for (int row = first - (K - 1); row < last; row += BURST) {
        __syncwarp();
        feed.deliver(stages[warp]);
        __syncwarp();
        if (row + BURST < last) feed.fetch();
#pragma unroll
        for (int k = 0; k < BURST; ++k, to += out_cols) {
            window.add(taps, stages[warp] + k * PITCH);
            if (row + k >= first && row + k < last) window.template write<ALIGNED>(to, out_cols - col);
        }
    }
}

template <int K, bool ALIGNED>
__global__ void __launch_bounds__(LANES * WARPS, Taps<K>::BLOCKS)
    conv2d(const float* __restrict__ x, const float* __restrict__ taps, float* __restrict__ y, int rows, int cols,
           int out_rows, int out_cols, int k, int stride, int padding) {
    walk_tile<Taps<K>, ALIGNED>(Taps<K>(taps), x, y, rows, cols, out_rows, out_cols, padding);
}

template <int K, bool ALIGNED>
__global__ void __launch_bounds__(LANES * WARPS, SeparableTaps<K>::BLOCKS)
    conv2d_separable(const float* __restrict__ x, const float* __restrict__ column, const float* __restrict__ row,
                     float* __restrict__ y, int rows, int cols, int out_rows, int out_cols, int padding) {
    walk_tile<SeparableTaps<K>, ALIGNED>(SeparableTaps<K>(column, row), x, y, rows, cols, out_rows, out_cols, padding);
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
        for (int u = 0; u < k; ++u) {
            const bool inside = top + u >= 0 && top + u < rows;
            const float* const row = x + static_cast<long long>(top + u) * cols + left;
            for (int v = 0; v < k; ++v) {  // the zeros around the image too: a tap may be infinite
                const float pixel = inside && v >= v_begin && v < v_end ? __ldg(row + v) : 0.0f;
                sum = fmaf(__ldg(taps + u * k + v), pixel, sum);
            }
        }
        y[static_cast<long long>(i) * out_cols + j] = sum;
    }
}

// Images of several channels.
template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
    conv2d_channels(const float* x, const float* taps, const float* bias, float* y, int channels_in, int channels_out,
                    int groups, int rows, int cols, int out_rows, int out_cols, int k_rows, int k_cols, int stride,
                    int padding, int dilation, long long pixels) {
    const Convolution sizes = {channels_in, channels_out, groups, rows,   cols,    out_rows,
                               out_cols,    k_rows,       k_cols, stride, padding, dilation};
    convolve_channels<T>(sizes, x, taps, bias, y, pixels, Identity{});
}

// The same with 3 x 3 taps, by windows in shared memory.
template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    conv2d_window(const float* x, const float* taps, const float* bias, float* y, int channels_in, int channels_out, int rows,
                  int cols, long long pixels) {
    extern __shared__ uint4 on_chip[];
    const WindowSizes sizes = {channels_in, channels_out, rows, cols, pixels};
    T::convolve(sizes, x, taps, bias, y, reinterpret_cast<float*>(on_chip), Identity{});
}

// In half precision, channels last.
template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    conv2d_half(const __half* x, const __half* taps, const __half* bias, __half* y, int channels_in, int channels_out,
                int groups, int rows, int cols, int out_rows, int out_cols, int k_rows, int k_cols, int stride,
                int padding, int dilation, int batch) {
    extern __shared__ uint4 on_chip[];
    const Convolution sizes = {channels_in, channels_out, groups, rows,   cols,    out_rows,
                               out_cols,    k_rows,       k_cols, stride, padding, dilation};
    HalfConvolution<T>(sizes, x, taps, batch, reinterpret_cast<unsigned short*>(on_chip)).convolve(bias, y, Identity{});
}

// The same with the images as tensor maps, by warpgroup instructions.
template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    conv2d_half_streamed(__grid_constant__ const TensorMap x, __grid_constant__ const TensorMap taps, const __half* bias,
                         __grid_constant__ const TensorMap y, int channels_in, int channels_out, int groups, int rows,
                         int cols, int out_rows, int out_cols, int k_rows, int k_cols, int stride, int padding,
                         int dilation, int batch) {
    extern __shared__ uint4 on_chip[];
    const Convolution sizes = {channels_in, channels_out, groups, rows,   cols,    out_rows,
                               out_cols,    k_rows,       k_cols, stride, padding, dilation};
    convolve_streamed<T>(sizes, x, taps, bias, y, batch, on_chip, Identity{});
}
