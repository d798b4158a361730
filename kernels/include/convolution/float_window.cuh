#pragma once

#include <cuda_pipeline.h>

#include "convolution/convolution_window.cuh"
#include "arrays/vector_load.cuh"

// The windows of convolution_window.cuh in FP32: a thread has eight output channels of R rows of four pixels.

/// Windows pixel by pixel, and taps turned over: depth, then output channel.
struct FloatWindow : WindowTile<4> {
    static constexpr int THREADS = MULTIPLYING, PITCH = 36, WIDTH = COLS + 2, PLANE = HEIGHT * PITCH, WINDOW = 8 * PLANE;
    static constexpr int TAP_PITCH = 68, STAGE = WINDOW + 72 * TAP_PITCH;
    static constexpr int POSITIONS = HEIGHT * WIDTH, EACH = (POSITIONS + THREADS - 1) / THREADS;

    template <class F>
    __device__ static void convolve(const WindowSizes& sizes, const float* x, const float* taps, const float* bias,
                                    float* y, float* shared, F f);
};

/// Copies in eight parts, a channel of the window and an eighth of the taps each: between the products of a channel's
/// window they keep no queue full.
struct WindowCopies {
    using T = FloatWindow;
    const WindowWalk<T>& walk;
    const float *from[T::EACH], *tap;
    int to[T::EACH];
    bool inside[T::EACH];

    __device__ WindowCopies(const WindowWalk<T>& walk, const float* x, const float* taps, const WindowPlace& place)
        : walk(walk) {
        const WindowSizes& sizes = walk.sizes;
        const float* const image = x + static_cast<long long>(place.number) * sizes.channels_in * sizes.plane();
#pragma unroll
        for (int e = 0; e < T::EACH; ++e) {
            const int i = threadIdx.x + e * T::THREADS, h = i / T::WIDTH, w = i % T::WIDTH;
            const int row = place.row - 1 + h, col = place.col - 1 + w;
            inside[e] = sizes.inside(row, col);
            from[e] = inside[e] ? image + static_cast<long long>(row) * sizes.cols + col : image;
            to[e] = h * T::PITCH + w;
        }
        const long long out = walk.channel() + static_cast<int>(threadIdx.x) / 8;
        tap = taps + out * sizes.channels_in * 9 + threadIdx.x % 8;
    }

    __device__ void copy(float* stage, int part) {
        const long long plane = walk.sizes.plane();
#pragma unroll
        for (int e = 0; e < T::EACH; ++e) {
            if (static_cast<int>(threadIdx.x) + e * T::THREADS < T::POSITIONS)
                __pipeline_memcpy_async(stage + part * T::PLANE + to[e], from[e], 4, inside[e] ? 0 : 4);
            from[e] += plane;
        }
        copy_taps(stage, part);
        if (part == 7) copy_taps(stage, 8), tap += 72;
    }

    /// Eight of the 72 taps of each output channel.
    __device__ void copy_taps(float* stage, int eight) const {
        const int k = eight * 8 + threadIdx.x % 8, out = threadIdx.x / 8;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const bool there = walk.channel() + out + 32 * h < walk.sizes.channels_out;
            const float* const at = tap + eight * 8 + (there ? 32ll * h * walk.sizes.channels_in * 9 : 0);
            __pipeline_memcpy_async(stage + T::WINDOW + k * T::TAP_PITCH + out + 32 * h, at, 4, there ? 0 : 4);
        }
    }
};

/// A thread's eight output channels, two fours 16 apart, and the first of its pixels. Neighbouring lanes share channels or
/// pixels.
struct FloatPlace {
    int out, row, col;

    __device__ FloatPlace() {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        out = warp / 4 * 32 + (lane % 2 + lane / 16 * 2) * 4;
        row = warp % 4 * FloatWindow::R, col = lane / 2 % 8 * 4;
    }
    __device__ int out_at(int m) const { return out + m / 4 * 16 + m % 4; }
};

/// The products of a channel; pixels to and fro, so that neighbouring FMAs share an operand.
__device__ inline void multiply_channel(const float (&p)[FloatWindow::R + 2][6], const float* taps,
                                        float (&sum)[8][FloatWindow::R][4]) {
    constexpr int PIXELS = 4 * FloatWindow::R;
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) {
        const float* const at = taps + tap * FloatWindow::TAP_PITCH;
        const float4 low = load4(at), high = load4(at + 16);
        const float w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int m = 0; m < 8; ++m)
#pragma unroll
            for (int n = 0; n < PIXELS; ++n) {
                const int j = m % 2 ? PIXELS - 1 - n : n;
                sum[m][j / 4][j % 4] = fmaf(w[m], p[j / 4 + tap / 3][j % 4 + tap % 3], sum[m][j / 4][j % 4]);
            }
    }
}

template <class F>
__device__ void FloatWindow::convolve(const WindowSizes& sizes, const float* x, const float* taps, const float* bias,
                                      float* y, float* shared, F f) {
    const WindowWalk<FloatWindow> walk(sizes);
    const WindowPlace tile = walk.at(0);
    WindowCopies copies(walk, x, taps, tile);
    for (int step = 0; step < STAGES - 1; ++step) {
        if (step < walk.chunks)
#pragma unroll 1
            for (int part = 0; part < 8; ++part) copies.copy(shared + step * STAGE, part);
        __pipeline_commit();
    }
    const FloatPlace place;
    float sum[8][R][4] = {};
#pragma unroll 1
    for (int step = 0; step < walk.chunks; ++step) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        const float* const stage = shared + step % STAGES * STAGE;
        float* const next = shared + (step + STAGES - 1) % STAGES * STAGE;
        const bool copying = step + STAGES - 1 < walk.chunks;
        const float* pixel = stage + place.row * PITCH + place.col;
        const float* tap = stage + WINDOW + place.out;
#pragma unroll 1
        for (int c = 0; c < 8; ++c, pixel += PLANE, tap += 9 * TAP_PITCH) {
            float p[R + 2][6];
#pragma unroll
            for (int i = 0; i < R + 2; ++i) {
                const float4 four = load4(pixel + i * PITCH);
                const float2 two = *reinterpret_cast<const float2*>(pixel + i * PITCH + 4);
                p[i][0] = four.x, p[i][1] = four.y, p[i][2] = four.z, p[i][3] = four.w, p[i][4] = two.x, p[i][5] = two.y;
            }
            if (copying) copies.copy(next, c);
            multiply_channel(p, tap, sum);
        }
        __pipeline_commit();
    }
#pragma unroll
    for (int m = 0; m < 8; ++m) {
        const int out = walk.channel() + place.out_at(m);
        if (out >= sizes.channels_out) continue;
        const float added = __ldg(bias + out);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const int row = tile.row + place.row + r, col = tile.col + place.col;
            if (sizes.before_end(row, col))
                store4(walk.output(y, tile, out, row, col),
                       map4(make_float4(sum[m][r][0], sum[m][r][1], sum[m][r][2], sum[m][r][3]),
                            [&](float total) { return f(total + added); }));
        }
    }
}
