#pragma once

#include <cuda_fp16.h>

#include "convolution/convolution.cuh"
#include "tensor_cores/ptx.cuh"
#include "tensor_cores/streamed_product.cuh"
#include "tensor_cores/tensor_map.cuh"
#include "tensor_cores/warpgroup_step.cuh"

// Cross-correlation in half precision, channels last and stride 1, by warpgroup instructions, for compute capability 9.0
// alone (on the CPU there is nothing to call). A block keeps the taps of 64 output channels in shared memory and takes one
// tile of pixels after the other. Tensor maps bring a tile's window once for each column of the taps, so that the window
// under each tap is whole rows of 8 pixels, as the instructions want their operand; padding comes as zeros. Pixels are
// the columns of the product: so the operand that each instruction reads anew, the taps, is the small one.

template <class T, class F>
__device__ void convolve_streamed(const Convolution& sizes, const TensorMap& x, const TensorMap& taps, const __half* bias,
                                  const TensorMap& y, int batch, void* shared, F f);

#ifndef CPU_CUDA

/// A warpgroup that copies, and two that take tiles of 32 rows of 8 pixels in turns.
struct StreamedPixels {
    static constexpr int THREADS = 384, STAGES = 3, CLUSTER = 1, READERS = 4;
    static constexpr int COLS = 8, ROWS = 32, CHANNELS = 64, DEPTH = 64;
    static constexpr unsigned int ROW = 128, LINE = COLS * ROW, TAP = CHANNELS * ROW;  // a pixel's or channel's depth
    static constexpr int STORED_ROWS = 8, BUFFERS = 2;                                 // of a box, and boxes of a warpgroup
    static constexpr unsigned int BOX = STORED_ROWS * LINE;
};

/// Copies a box of four dimensions; what lies outside is zero.
__device__ inline void load_box(unsigned int shared, const TensorMap& map, const int (&at)[4], unsigned int barrier) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];"
                 : : "r"(shared), "l"(&map), "r"(barrier), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]) : "memory");
}

__device__ inline void store_box(const TensorMap& map, const int (&at)[4], unsigned int shared) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
                 : : "l"(&map), "r"(shared), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]) : "memory");
}

/// Four blocks of 8 x 8, turned over: lane l gives the address of line l % 8 of block l / 8, to which the pairs of the
/// lanes' columns go.
__device__ inline void store_turned(unsigned int shared, const unsigned int (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                 : : "r"(shared), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}

/// Where things are in shared memory, and which tiles a block takes: those of its 64 output channels.
struct StreamedWindows {
    using T = StreamedPixels;
    const Convolution& sizes;
    int chunks, across, along, tiles, channel, first, step;
    unsigned int stage_bytes, taps, stages, buffers, full, empty, ready;

    __device__ StreamedWindows(const Convolution& sizes, int batch, void* shared) : sizes(sizes) {
        const int outs = (sizes.channels_out + T::CHANNELS - 1) / T::CHANNELS;
        chunks = (sizes.channels_in + T::DEPTH - 1) / T::DEPTH;
        across = (sizes.out_cols + T::COLS - 1) / T::COLS, along = (sizes.out_rows + T::ROWS - 1) / T::ROWS;
        tiles = batch * along * across;
        channel = static_cast<int>(blockIdx.x) % outs * T::CHANNELS;
        first = static_cast<int>(blockIdx.x) / outs, step = static_cast<int>(gridDim.x) / outs;
        stage_bytes = (T::ROWS + (sizes.k_rows - 1) * sizes.dilation) * T::LINE;
        taps = (shared_address(shared) + 1023) / 1024 * 1024;
        stages = taps + chunks * sizes.taps() * T::TAP;
        buffers = stages + T::STAGES * stage_bytes;
        full = buffers + 2 * T::BUFFERS * T::BOX;
        empty = full + 8 * T::STAGES;
        ready = empty + 8 * T::STAGES;
    }

    __device__ void start() const {
        for (int stage = 0; stage < T::STAGES; ++stage) {
            start_barrier(full + 8 * stage, 1);
            start_barrier(empty + 8 * stage, T::READERS);
        }
        start_barrier(ready, 1);
        show_barriers();
    }

    __device__ int stages_of_tile() const { return chunks * sizes.k_cols; }

    /// Image, row and column of a tile.
    __device__ int3 at(int tile) const {
        const int line = tile / across;
        return make_int3(line / along, line % along * T::ROWS, tile % across * T::COLS);
    }
};

/// The copying thread: the taps, then the windows of every tile, one for each chunk of channels and column of the taps.
__device__ inline void copy_windows(const StreamedWindows& own, const TensorMap& x, const TensorMap& taps) {
    using T = StreamedPixels;
    const Convolution& sizes = own.sizes;
    prefetch(x);
    prefetch(taps);
    arrive_and_expect(own.ready, own.chunks * sizes.taps() * T::TAP);
    unsigned int to = own.taps;
    for (int chunk = 0; chunk < own.chunks; ++chunk)
        for (int u = 0; u < sizes.k_rows; ++u)
            for (int v = 0; v < sizes.k_cols; ++v, to += T::TAP)
                load_box(to, taps, {chunk * T::DEPTH, v, u, own.channel}, own.ready);
    RingPlace<T> place;
    for (int tile = own.first; tile < own.tiles; tile += own.step) {
        const int3 at = own.at(tile);
        for (int chunk = 0; chunk < own.chunks; ++chunk)
#pragma unroll 1
            for (int v = 0; v < sizes.k_cols; ++v, place.advance()) {
                const unsigned int full = own.full + 8 * place.stage;
                await_phase(own.empty + 8 * place.stage, place.parity ^ 1);
                arrive_and_expect(full, own.stage_bytes);
                load_box(own.stages + place.stage * own.stage_bytes, x,
                         {chunk * T::DEPTH, at.z - sizes.padding + v * sizes.dilation, at.y - sizes.padding, at.x}, full);
            }
    }
}

/// This warp has read a stage.
__device__ inline void release_window(const StreamedWindows& own, unsigned int stage) {
    if (warp_lane() == 0) arrive_at(own.empty + 8 * stage);
}

/// The sums of a tile: 64 channels, and in 8 columns each row of pixels.
__device__ inline void multiply_windows(const StreamedWindows& own, RingPlace<StreamedPixels>& place,
                                        float (&sum)[StreamedPixels::ROWS][4]) {
    using T = StreamedPixels;
    const Convolution& sizes = own.sizes;
    unsigned int before = 0;
    int keep = 0;
    for (int chunk = 0; chunk < own.chunks; ++chunk)
#pragma unroll 1
        for (int v = 0; v < sizes.k_cols; ++v, place.advance()) {
            await_phase(own.full + 8 * place.stage, place.parity);
            __syncwarp();
            unsigned int tap = own.taps + (chunk * sizes.taps() + v) * T::TAP;
            unsigned int window = own.stages + place.stage * own.stage_bytes;
#pragma unroll 1
            for (int u = 0; u < sizes.k_rows; ++u) {
                const unsigned long long a = operand_at(tap, 0), b = operand_at(window, 0);
                open_batch();
#pragma unroll
                for (unsigned int depth = 0; depth < 4; ++depth)
                    multiply_step<0, true, true>(sum, moved(a, 32 * depth), moved(b, 32 * depth), keep || depth > 0);
                close_batch();
                wait_for_earlier_batches();
                if (u == 0 && keep) release_window(own, before);
                keep = 1;
                tap += sizes.k_cols * T::TAP;
                window += sizes.dilation * T::LINE;
            }
            before = place.stage;
        }
    pass_turn(warpgroup() - 1);
    wait_for_batches<0>(sum);
    release_window(own, before);
}

/// y = f(sum + bias of its channel), through shared memory, pixel by pixel.
template <class F>
__device__ inline void store_windows(const StreamedWindows& own, const TensorMap& y, const __half* bias, const int3& at,
                                     const float (&sum)[StreamedPixels::ROWS][4], F f) {
    using T = StreamedPixels;
    const int group = warpgroup(), lane = warp_lane(), warp = static_cast<int>(threadIdx.x) % 128 / 32;
    const bool first = threadIdx.x % 128 == 0;
    const int channel = own.channel + 16 * warp + lane / 4;
    const float low = channel < own.sizes.channels_out ? __half2float(bias[channel]) : 0.0f;
    const float high = channel + 8 < own.sizes.channels_out ? __half2float(bias[channel + 8]) : 0.0f;
    const unsigned int piece = 2 * warp + lane / 8 % 2, line = lane / 16 * T::LINE + lane % 8 * T::ROW;
    const unsigned int buffers = own.buffers + (group - 1) * T::BUFFERS * T::BOX;
    const unsigned int to = buffers + line + (piece ^ lane % 8) * 16;
    const auto packed = [&](float one, float other, float added) {
        const __half2 pair = __floats2half2_rn(f(one + added), f(other + added));
        return *reinterpret_cast<const unsigned int*>(&pair);
    };
#pragma unroll
    for (int part = 0; part < T::ROWS / T::STORED_ROWS; ++part) {
        const unsigned int box = part % T::BUFFERS * T::BOX;
        if (first) wait_for_stores<T::BUFFERS - 1>();
        __syncwarp();
        synchronize_warpgroup(group);
#pragma unroll
        for (int i = 0; i < T::STORED_ROWS; i += 2) {
            const float(&one)[4] = sum[part * T::STORED_ROWS + i], (&two)[4] = sum[part * T::STORED_ROWS + i + 1];
            store_turned(to + box + i * T::LINE, {packed(one[0], one[1], low), packed(one[2], one[3], high),
                                                  packed(two[0], two[1], low), packed(two[2], two[3], high)});
        }
        show_to_warpgroups();
        synchronize_warpgroup(group);
        if (first) {
            store_box(y, {own.channel, at.z, at.y + part * T::STORED_ROWS, at.x}, buffers + box);
            close_stores();
        }
        __syncwarp();
    }
}

/// y = f(W * X + bias). `shared` has room for the taps, the stages, the buffers, the barriers, and 1 KiB, to whose
/// multiples they are aligned.
template <class T, class F>
__device__ void convolve_streamed(const Convolution& sizes, const TensorMap& x, const TensorMap& taps, const __half* bias,
                                  const TensorMap& y, int batch, void* shared, F f) {
    const StreamedWindows own(sizes, batch, shared);
    if (threadIdx.x == 0) own.start();
    __syncthreads();
    if (warpgroup() == 0) {
        shrink_registers<24>();
        if (threadIdx.x == 0) copy_windows(own, x, taps);
        return;
    }
    grow_registers<240>();
    const int group = warpgroup() - 1;
    RingPlace<T> place;
    if (group == 1) pass_turn(group);
    await_phase(own.ready, 0);
#pragma unroll 1
    for (int turn = group, tile; tile = own.first + turn * own.step, tile < own.tiles; turn += 2) {
        float sum[T::ROWS][4];
        place.go_to(turn * own.stages_of_tile());
        await_turn(group);
        multiply_windows(own, place, sum);
        store_windows(own, y, bias, own.at(tile), sum, f);
    }
    if (threadIdx.x % 128 == 0) wait_for_stores<0>();
}

#endif
