#pragma once

#include <cuda_pipeline.h>

#include "convolution/convolution_window.cuh"
#include "tensor_cores/ptx.cuh"

// The windows of convolution_window.cuh on the tensor cores: operands rounded to TF32, sums in FP32.

/// Windows in 16-byte pieces, from four columns left of the tile on; planes and taps are apart such that the lanes of a
/// fragment meet no bank twice.
template <int R>
struct TensorWindow : WindowTile<R> {
    using Base = WindowTile<R>;
    static constexpr int THREADS = Base::MULTIPLYING, COPYING = THREADS;
    static constexpr int PITCH = 40, PIECES = PITCH / 4, FIRST = 3, RAW = Base::HEIGHT * PITCH;
    static constexpr int PLANE = RAW + (24 - RAW % 16) % 16, WINDOW = 8 * PLANE;
    static constexpr int TAP_PITCH = 76, STAGE = WINDOW + Base::CHANNELS * TAP_PITCH;
    static_assert(PLANE % 32 == 8 || PLANE % 32 == 24);

    template <class F>
    __device__ static void convolve(const WindowSizes& sizes, const float* x, const float* taps, const float* bias,
                                    float* y, float* shared, F f);
};
using TallWindow = TensorWindow<4>;
using ShortWindow = TensorWindow<2>;

/// Starts the copies of a step's window; what is outside the image is zero. `thread` is one of T::COPYING.
template <class T>
__device__ inline void copy_window(const WindowWalk<T>& walk, const float* x, float* to, int step, int thread) {
    const WindowSizes& sizes = walk.sizes;
    const WindowPlace place = walk.at(step);
    const int channel = step % walk.chunks * 8;
    const float* const image = x + (static_cast<long long>(place.number) * sizes.channels_in + channel) * sizes.plane();
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#pragma unroll 1  // side by side their addresses take more registers than there are
#else
#pragma unroll
#endif
    for (int i = thread; i < 8 * T::HEIGHT * T::PIECES; i += T::COPYING) {
        const int piece = i % T::PIECES, line = i / T::PIECES, h = line % T::HEIGHT, c = line / T::HEIGHT;
        const int row = place.row - 1 + h, col = place.col - 4 + 4 * piece;
        const bool inside = sizes.inside(row, col);
        const float* const from = image + (static_cast<long long>(c) * sizes.rows + row) * sizes.cols + col;
        __pipeline_memcpy_async(to + c * T::PLANE + h * T::PITCH + 4 * piece, inside ? from : x, 16, inside ? 0 : 16);
    }
}

/// Starts the copies of a step's taps, output channel after output channel.
template <class T>
__device__ inline void copy_taps(const WindowWalk<T>& walk, const float* taps, float* to, int step) {
    const int chunk = step % walk.chunks;
#pragma unroll
    for (int i = threadIdx.x; i < T::CHANNELS * 18; i += T::THREADS) {
        const int line = i / 18, piece = i % 18, out = walk.channel() + line;
        const bool inside = out < walk.sizes.channels_out;
        const long long width = static_cast<long long>(walk.sizes.channels_in) * 9;
        const float* const from = taps + out * width + chunk * 72 + piece * 4;
        __pipeline_memcpy_async(to + line * T::TAP_PITCH + piece * 4, inside ? from : taps, 16, inside ? 0 : 16);
    }
}

/// A warp has 16 pixels of each of R rows.
template <class T>
struct WindowWarp {
    int row, col;

    __device__ explicit WindowWarp(int warp) : row(warp / 2 * T::R), col(warp % 2 * 16) {}
};

/// 16 pixels side by side, eight channels deep, as multiply_lanes has a block of 16 lines, its second and third register
/// exchanged where they are columns.
template <class T>
__device__ inline void read_pixels(unsigned int (&to)[4], const float* window, int row, int col) {
    const float* const at = window + warp_lane() % 4 * T::PLANE + row * T::PITCH + T::FIRST + col + warp_lane() / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = to_tf32(at[i / 2 * 4 * T::PLANE + i % 2 * 8]);
}

template <class T>
__device__ inline void multiply_window(const float* window, const float* taps, float (&sum)[T::R][2][4][4]) {
    const WindowWarp<T> warp(threadIdx.x / 32);
    const float* const lane_taps = taps + warp_lane() / 4 * T::TAP_PITCH + warp_lane() % 4 * 9;
#pragma unroll
    for (int v = 0; v < 3; ++v) {
        unsigned int b[T::R + 2][4];
#pragma unroll
        for (int i = 0; i < T::R + 2; ++i) read_pixels<T>(b[i], window, warp.row + i, warp.col + v);
#pragma unroll
        for (int u = 0; u < 3; ++u) {
            unsigned int a[4][4];
#pragma unroll
            for (int m = 0; m < 4; ++m)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    a[m][i] = to_tf32(lane_taps[(16 * m + i % 2 * 8) * T::TAP_PITCH + i / 2 * 36 + u * 3 + v]);
#pragma unroll
            for (int r = 0; r < T::R; ++r)
#pragma unroll
                for (int h = 0; h < 2; ++h)
#pragma unroll
                    for (int m = 0; m < 4; ++m) multiply_lanes<2>(sum[r][h][m], a[m], b[r + u][h], b[r + u][h + 2]);
        }
    }
}

/// y = f(sum + bias of its channel); the sums are zero again.
template <class T, class F>
__device__ inline void store_window(const WindowWalk<T>& walk, int step, const float* bias, float* y,
                                    float (&sum)[T::R][2][4][4], F f) {
    const WindowPlace place = walk.at(step);
    const WindowWarp<T> warp(threadIdx.x / 32);
    const int row = place.row + warp.row, col = place.col + warp.col + warp_lane() % 4 * 2;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int out = walk.channel() + 8 * i + warp_lane() / 4;
        const bool there = out < walk.sizes.channels_out;
        const float added = there ? __ldg(bias + out) : 0.0f;
        float* const to = walk.output(y, place, out, row, col);
#pragma unroll
        for (int r = 0; r < T::R; ++r)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float& one = sum[r][h][i / 2][i % 2 * 2], &two = sum[r][h][i / 2][i % 2 * 2 + 1];
                if (there && walk.sizes.before_end(row + r, col + 8 * h))
                    *reinterpret_cast<float2*>(to + r * walk.sizes.cols + 8 * h) = make_float2(f(one + added), f(two + added));
                one = two = 0.0f;
            }
    }
}

template <int R>
template <class F>
__device__ void TensorWindow<R>::convolve(const WindowSizes& sizes, const float* x, const float* taps, const float* bias,
                                          float* y, float* shared, F f) {
    using T = TensorWindow<R>;
    const WindowWalk<T> walk(sizes);
    const auto copy = [&](int step) {
        float* const stage = shared + step % T::STAGES * T::STAGE;
        if (step < walk.steps) {
            copy_window(walk, x, stage, step, threadIdx.x);
            copy_taps(walk, taps, stage + T::WINDOW, step);
        }
        __pipeline_commit();
    };
    for (int step = 0; step < T::STAGES - 1; ++step) copy(step);
    float sum[R][2][4][4] = {};
#pragma unroll 1
    for (int step = 0; step < walk.steps; ++step) {
        __pipeline_wait_prior(T::STAGES - 2);
        __syncthreads();
        copy(step + T::STAGES - 1);
        const float* const stage = shared + step % T::STAGES * T::STAGE;
        multiply_window<T>(stage, stage + T::WINDOW, sum);
        if (walk.ends_tile(step)) store_window<T>(walk, step, bias, y, sum, f);
    }
}
