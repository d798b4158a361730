#pragma once

#include "tensor_cores/ptx.cuh"
#include "tensor_cores/tensor_map.cuh"
#include "convolution/tensor_window.cuh"

// The windows of convolution_window.cuh by warpgroup instructions in TF32, for compute capability 9.0 alone (on the CPU
// there is nothing to call). A block keeps the taps of 64 output channels in shared memory, rounded. Pixels are the rows
// of the product and come from registers, as shifted windows are no operands in shared memory.

#ifndef CPU_CUDA

/// A warpgroup that copies windows, and two that multiply.
struct WarpgroupWindow : TensorWindow<4> {
    static constexpr int THREADS = 384, COPYING = 128, READERS = 8, COPYING_REGISTERS = 56, MULTIPLYING_REGISTERS = 224;
    // Of a tap, 32 input channels: a row of 128 bytes for each output channel, its 16-byte pieces swizzled.
    static constexpr int HALF = CHANNELS * 32;

    template <class F>
    __device__ static void convolve(const WindowSizes& sizes, const float* x, const float* taps, const float* bias,
                                    float* y, float* shared, F f);
};

/// sum += a b: 64 pixels, 64 output channels, 8 deep; a in registers (as multiply_lanes has it, 16 rows a warp).
__device__ inline void multiply_pixels(float (&sum)[8][4], const unsigned int (&a)[4], unsigned long long b) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {"
                 NUMBERS_TO_31 "}, {%32, %33, %34, %35}, %36, p, 1, 1;}"
                 : SUMS_32(0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/// Where things are in shared memory: taps, for 32 input channels after the other, windows, barriers.
struct WindowRing {
    using T = WarpgroupWindow;
    float *kept, *stages;
    unsigned int full, parity = 0;
    int stage = 0;

    __device__ WindowRing(const WindowSizes& sizes, float* shared)
        : kept(shared + (1024 - shared_address(shared) % 1024) % 1024 / 4) {
        stages = kept + (sizes.channels_in + 31) / 32 * 9 * T::HALF;
        full = shared_address(stages + T::STAGES * T::WINDOW);
    }

    __device__ void start() const {
        for (int i = 0; i < T::STAGES; ++i) {
            start_barrier(full + 8 * i, T::COPYING);
            start_barrier(full + 8 * (T::STAGES + i), T::READERS);
        }
    }

    __device__ float* window() const { return stages + stage * T::WINDOW; }
    __device__ unsigned int filled() const { return full + 8 * stage; }
    __device__ unsigned int read() const { return filled() + 8 * T::STAGES; }
    __device__ void next() {
        if (++stage == T::STAGES) stage = 0, parity ^= 1;
    }

    __device__ void keep(const WindowWalk<T>& walk, const float* taps) const {
        const int channels_in = walk.sizes.channels_in;
        const float* const own = taps + static_cast<long long>(walk.channel()) * channels_in * 9;
        for (int i = threadIdx.x; i < T::CHANNELS * channels_in * 9; i += T::THREADS) {
            const int tap = i % 9, line = i / 9, in = line % channels_in, out = line / channels_in;
            const int at = (in / 32 * 9 + tap) * T::HALF + out * 32 + (in % 32 / 4 ^ out % 8) * 4 + in % 4;
            kept[at] = walk.channel() + out < walk.sizes.channels_out ? __uint_as_float(to_tf32(__ldg(own + i))) : 0.0f;
        }
    }
};

/// Adds the products of a chunk, a column of the taps in each batch; the next column is read meanwhile. `release` is called
/// when the window has been read.
template <class Release>
__device__ inline void multiply_chunk(const WindowRing& ring, int chunk, const WindowWarp<WarpgroupWindow>& warp,
                                      float (&sum)[WarpgroupWindow::R][8][4], Release release) {
    using T = WarpgroupWindow;
    const unsigned int taps = shared_address(ring.kept) + chunk / 4 * (9 * 4 * T::HALF) + chunk % 4 * 32;
    unsigned int a[2][T::R + 2][4];
#pragma unroll
    for (int v = 0; v < 3; ++v) {
#pragma unroll
        for (int i = 0; i < T::R + 2; ++i) read_pixels<T>(a[v % 2][i], ring.window(), warp.row + i, warp.col + v);
        open_batch();
#pragma unroll
        for (int u = 0; u < 3; ++u) {
            const unsigned long long b = operand_at(taps + (u * 3 + v) * 4 * T::HALF, 0);
#pragma unroll
            for (int r = 0; r < T::R; ++r) multiply_pixels(sum[r], a[v % 2][r + u], b);
        }
        close_batch();
        if (v == 1) wait_for_earlier_batches();  // which read the registers that the last column gets
    }
    release();
    wait_for_batches<0>(sum[0]);
#pragma unroll
    for (int r = 1; r < T::R; ++r) settle(sum[r]);
}

/// y = f(sum + bias of its channel); the sums are zero again.
template <class F>
__device__ inline void store_pixels(const WindowWalk<WarpgroupWindow>& walk, int step, const float* bias, float* y,
                                    const WindowWarp<WarpgroupWindow>& warp, float (&sum)[WarpgroupWindow::R][8][4], F f) {
    const WindowPlace place = walk.at(step);
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int out = walk.channel() + 8 * j + warp_lane() % 4 * 2 + e;
            // One place, and what is left of the image: there are too few registers for each pixel's.
            const float added = out < walk.sizes.channels_out ? __ldg(bias + out) : 0.0f;
            float* const to = walk.output(y, place, out, place.row + warp.row, place.col + warp.col + warp_lane() / 4);
            const int rows = out < walk.sizes.channels_out ? walk.sizes.rows - place.row - warp.row : 0;
            const int cols = walk.sizes.cols - place.col - warp.col - warp_lane() / 4;
#pragma unroll
            for (int r = 0; r < WarpgroupWindow::R; ++r)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    if (r < rows && 8 * h < cols) to[r * walk.sizes.cols + 8 * h] = f(sum[r][j][2 * h + e] + added);
                    sum[r][j][2 * h + e] = 0.0f;
                }
        }
}

/// `shared` has space for the taps, the stages, the barriers, and 1 KiB, to whose multiples the taps are aligned.
template <class F>
__device__ void WarpgroupWindow::convolve(const WindowSizes& sizes, const float* x, const float* taps, const float* bias,
                                          float* y, float* shared, F f) {
    const WindowWalk<WarpgroupWindow> walk(sizes);
    WindowRing ring(sizes, shared);
    if (threadIdx.x == 0) ring.start();
    ring.keep(walk, taps);
    show_to_warpgroups();
    __syncthreads();
    if (warpgroup() == 0) {
        shrink_registers<COPYING_REGISTERS>();
#pragma unroll 1
        for (int step = 0; step < walk.steps; ++step, ring.next()) {
            await_phase(ring.read(), ring.parity ^ 1);
            copy_window(walk, x, ring.window(), step, threadIdx.x);
            arrive_when_copied(ring.filled());
        }
        __pipeline_wait_prior(0);
        return;
    }
    grow_registers<MULTIPLYING_REGISTERS>();
    const WindowWarp<WarpgroupWindow> warp(threadIdx.x / 32 - 4);
    float sum[R][8][4] = {};
#pragma unroll 1
    for (int step = 0; step < walk.steps; ++step, ring.next()) {
        await_phase(ring.filled(), ring.parity);
        __syncwarp();
        multiply_chunk(ring, step % walk.chunks, warp, sum, [&] {
            __syncwarp();
            if (warp_lane() == 0) arrive_at(ring.read());
        });
        if (walk.ends_tile(step)) store_pixels(walk, step, bias, y, warp, sum, f);
    }
}

#endif
