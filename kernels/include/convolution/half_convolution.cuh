#pragma once

#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include "convolution/convolution.cuh"
#include "tensor_cores/ptx.cuh"

// Cross-correlation of images of several channels in half precision, channels last, on the tensor cores with FP32 sums.
// A block stays and takes one tile of pixels after the other. The tile's window of 64 input channels is read into shared
// memory once and serves all taps, shifted, while the next one arrives; of the taps one matrix of 64 x 64 comes at a time.

/// Eight warps; of each, BLOCKS times 16 pixels side by side.
template <int BLOCKS_>
struct PixelTile {
    static constexpr int BLOCKS = BLOCKS_, THREADS = 256, STAGES = 4, DEPTH = 64, CHANNELS = 64, TAPS = DEPTH * CHANNELS;
    static constexpr int COLS = BLOCKS > 1 ? 32 : 16, ROWS_OF_WARP = BLOCKS * 16 / COLS, ROWS = 8 * ROWS_OF_WARP;
};
using ManyPixels = PixelTile<4>;
using FewPixels = PixelTile<1>;

/// Where the 16-byte piece that holds `channel` of a line of 64 stands: neighbouring lines meet no bank twice.
__device__ inline int piece_at(int line, int channel) { return line * 64 + (channel / 8 ^ line % 8) * 8; }

/// What a round works on: the tile's image, first pixel, output channels and their group, and the first input channel.
struct __align__(16) ConvolutionRound {
    int number, row, column, channel, channels, group, depth, last;  // whether the tile is done then
};

template <class T>
struct HalfConvolution {
    static constexpr int AHEAD = T::STAGES - 1, PLACES = 8;  // rounds that are known: this one to the AHEAD-th, and older
    static_assert(PLACES * sizeof(ConvolutionRound) == 256 && AHEAD + 2 <= PLACES);
    const Convolution sizes;
    const unsigned short *x, *taps;  // [image, row, column, channel], [output channel, tap, channel]
    ConvolutionRound* known;
    unsigned short *stages, *windows;
    int group_in, across, along, tiles_out, chunks, width, height, rounds;

    __device__ HalfConvolution(const Convolution& sizes, const __half* x, const __half* taps, int batch,
                               unsigned short* shared)
        : sizes(sizes), x(reinterpret_cast<const unsigned short*>(x)), taps(reinterpret_cast<const unsigned short*>(taps)),
          known(reinterpret_cast<ConvolutionRound*>(shared)), stages(shared + 128), windows(stages + T::STAGES * T::TAPS),
          group_in(sizes.group_in()) {
        across = (sizes.out_cols + T::COLS - 1) / T::COLS, along = (sizes.out_rows + T::ROWS - 1) / T::ROWS;
        tiles_out = sizes.groups * ((sizes.group_out() + T::CHANNELS - 1) / T::CHANNELS);
        chunks = (group_in + T::DEPTH - 1) / T::DEPTH;
        width = (T::COLS - 1) * sizes.stride + (sizes.k_cols - 1) * sizes.dilation + 1;
        height = (T::ROWS - 1) * sizes.stride + (sizes.k_rows - 1) * sizes.dilation + 1;
        const int tiles = batch * along * across * tiles_out, own = tiles - static_cast<int>(blockIdx.x);
        rounds = (own + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x) * chunks;
    }

    /// Makes a round known to all threads, from the next barrier on; its divisions would cost each thread as much as the
    /// products of a tap. Tiles that follow one another take the same pixels for different output channels.
    __device__ void plan(int index) const {
        const int tile = blockIdx.x + index / chunks * gridDim.x, pixels = tile / tiles_out, out = tile % tiles_out;
        const int of_group = tiles_out / sizes.groups, in_group = out % of_group * T::CHANNELS, group = out / of_group;
        const int outputs = sizes.group_out();
        known[index % PLACES] = {pixels / (across * along), pixels / across % along * T::ROWS, pixels % across * T::COLS,
                                 group * outputs + in_group, min(T::CHANNELS, outputs - in_group), group,
                                 index % chunks * T::DEPTH, index % chunks == chunks - 1};
    }
    __device__ ConvolutionRound round(int index) const { return known[index % PLACES]; }
    __device__ unsigned short* window(int index) const { return windows + index % 2 * (width * height * T::DEPTH); }

    /// Input and output channels of a round that the matrix instructions read. Only tiles of few pixels look whether they
    /// are few: the others take longer with it.
    static constexpr bool LOOKS = T::BLOCKS == 1;
    __device__ int depth_of(const ConvolutionRound& now) const {
        return LOOKS ? min(T::DEPTH, (group_in - now.depth + 15) / 16 * 16) : T::DEPTH;
    }
    __device__ static int lines_of(const ConvolutionRound& now) {
        return LOOKS && now.channels <= 16 ? 16 : T::CHANNELS;
    }

    /// Starts the copies of a round's tap into a stage: up to 64 output channels, each with up to 64 input channels.
    __device__ void copy_taps(int index, int tap, int stage) const {
        const int count = sizes.taps();
        const ConvolutionRound now = round(index);
        const int lines = lines_of(now), depth = depth_of(now);
        unsigned short* const to = stages + stage * T::TAPS;
#pragma unroll
        for (int i = threadIdx.x; i < T::TAPS / 8; i += T::THREADS) {
            const int line = i / 8, channel = now.depth + i % 8 * 8;
            if (LOOKS && (line >= lines || i % 8 * 8 >= depth)) continue;
            const bool inside = line < now.channels && channel < group_in;
            const long long from = (static_cast<long long>(now.channel + line) * count + tap) * group_in + channel;
            __pipeline_memcpy_async(to + piece_at(line, i % 8 * 8), taps + (inside ? from : 0), 16, inside ? 0 : 16);
        }
    }

    /// Starts a part of the copies of a round's window; outside the image it is zero.
    __device__ void copy_window(int index, int part, int parts) const {
        const ConvolutionRound now = round(index);
        const int depth = depth_of(now);
        unsigned short* const to = window(index);
        const int all = width * height * 8, share = (all + parts - 1) / parts, end = min(all, (part + 1) * share);
        const unsigned int reciprocal = 0xffffffffu / static_cast<unsigned int>(width) + 1;  // exact below 2^16
        const int top = now.row * sizes.stride - sizes.padding, left = now.column * sizes.stride - sizes.padding;
        for (int i = part * share + threadIdx.x; i < end; i += T::THREADS) {
            const int place = i / 8, channel = now.depth + i % 8 * 8;
            if (LOOKS && i % 8 * 8 >= depth) continue;
            const int down = width == 1 ? place : static_cast<int>(__umulhi(static_cast<unsigned int>(place), reciprocal));
            const int row = top + down, column = left + place - down * width;
            const bool in_image = row >= 0 && row < sizes.rows && column >= 0 && column < sizes.cols;
            const bool inside = in_image && channel < group_in;
            const long long pixel = (static_cast<long long>(now.number) * sizes.rows + row) * sizes.cols + column;
            const long long from = pixel * sizes.channels_in + now.group * group_in + channel;
            __pipeline_memcpy_async(to + piece_at(place, i % 8 * 8), x + (inside ? from : 0), 16, inside ? 0 : 16);
        }
    }

    /// Adds one tap's products of the window to `sum`, for the first 16 PARTS output channels.
    template <int PARTS>
    __device__ void multiply(int index, int tap, int stage, float (&sum)[T::BLOCKS][8][4]) const {
        const int u = tap / sizes.k_cols * sizes.dilation, v = tap % sizes.k_cols * sizes.dilation;
        const unsigned short *const own = window(index), *const matrix = stages + stage * T::TAPS;
        const int depth = min(T::DEPTH, group_in - round(index).depth);
        const int first = threadIdx.x / 32 * T::ROWS_OF_WARP;
#pragma unroll 2
        for (int k = 0; k < depth; k += 16) {
            unsigned int a[T::BLOCKS][4], b[PARTS][4];
#pragma unroll
            for (int i = 0; i < T::BLOCKS; ++i) {
                const int row = first + 16 * i / T::COLS, column = 16 * i % T::COLS;
                const int place = (row * sizes.stride + u) * width + column * sizes.stride + v;
                load_rows(a[i], [&](int line, int d) { return own + piece_at(place + line * sizes.stride, k + d); });
            }
#pragma unroll
            for (int j = 0; j < PARTS; ++j)  // the depth's halves of 8 lines side by side, as the instruction takes them
                load_rows(b[j], [&](int line, int d) { return matrix + piece_at(16 * j + line % 8 + d, k + line / 8 * 8); });
#pragma unroll
            for (int i = 0; i < T::BLOCKS; ++i)
#pragma unroll
                for (int j = 0; j < 2 * PARTS; ++j) multiply_lanes<0>(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
    }

    /// y = f(sum + bias of its channel), turned in shared memory so that 64 channels of a pixel are written together.
    template <class F>
    __device__ void store(int index, const __half* bias, __half* y, F f, const float (&sum)[T::BLOCKS][8][4]) const {
        const ConvolutionRound now = round(index);
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        unsigned short* const own = window(index) + warp * T::BLOCKS * 16 * 64;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            if (LOOKS && 8 * j >= now.channels) continue;
            const int channel = 8 * j + lane % 4 * 2;
            const bool there = channel < now.channels;
            const float first = there ? __half2float(bias[now.channel + channel]) : 0.0f;
            const float second = there ? __half2float(bias[now.channel + channel + 1]) : 0.0f;
#pragma unroll
            for (int i = 0; i < 2 * T::BLOCKS; ++i) {
                const float* const from = sum[i / 2][j] + i % 2 * 2;
                const __half2 pair = __floats2half2_rn(f(from[0] + first), f(from[1] + second));
                *reinterpret_cast<__half2*>(own + piece_at(8 * i + lane / 4, channel) + lane % 4 * 2) = pair;
            }
        }
        __syncwarp();
#pragma unroll 4
        for (int i = lane; i < T::BLOCKS * 16 * 8; i += 32) {
            const int pixel = i / 8, channel = i % 8 * 8;
            const int row = now.row + warp * T::ROWS_OF_WARP + pixel / T::COLS, column = now.column + pixel % T::COLS;
            if (row >= sizes.out_rows || column >= sizes.out_cols || channel >= now.channels) continue;
            const long long at = (static_cast<long long>(now.number) * sizes.out_rows + row) * sizes.out_cols + column;
            *reinterpret_cast<uint4*>(y + at * sizes.channels_out + now.channel + channel) =
                *reinterpret_cast<const uint4*>(own + piece_at(pixel, channel));
        }
    }

    /// A window's copies are spread over the taps of the round before, but for the last two, whose copies may still be
    /// under way when it begins.
    template <class F>
    __device__ void convolve(const __half* bias, __half* y, F f) const {
        const int count = sizes.taps(), steps = rounds * count, parts = max(1, count - 2);
        if (static_cast<int>(threadIdx.x) <= AHEAD) plan(threadIdx.x);
        __syncthreads();
        copy_window(0, 0, 1);
        int next_index = 0, next_tap = 0;  // of the step whose taps are copied
        const auto copy_next = [&](int step) {
            if (step < steps) copy_taps(next_index, next_tap, step % T::STAGES);
            if (++next_tap == count) next_tap = 0, ++next_index;
        };
        for (int step = 0; step < AHEAD; ++step) {
            copy_next(step);
            __pipeline_commit();
        }
        float sum[T::BLOCKS][8][4] = {};
        int index = 0, tap = 0;
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            if (count > 2) __pipeline_wait_prior(T::STAGES - 2);
            else __pipeline_wait_prior(0);
            __syncthreads();
            copy_next(step + AHEAD);
            if (tap < parts && index + 1 < rounds) copy_window(index + 1, tap, parts);
            __pipeline_commit();
            if (tap == 0 && threadIdx.x == 0) plan(index + AHEAD + 1);
            if (LOOKS && lines_of(round(index)) == 16) multiply<1>(index, tap, step % T::STAGES, sum);
            else multiply<4>(index, tap, step % T::STAGES, sum);
            if (++tap < count) continue;
            tap = 0, ++index;
            if (!round(index - 1).last) continue;
            __syncthreads();
            store(index - 1, bias, y, f, sum);
#pragma unroll
            for (int i = 0; i < T::BLOCKS; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j][0] = sum[i][j][1] = sum[i][j][2] = sum[i][j][3] = 0.0f;
        }
    }
};
