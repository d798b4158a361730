#pragma once

#include "products/gemm_tile.cuh"
#include "tensor_cores/tensor_tile.cuh"

// Cross-correlation of images of several channels as a tiled product, without the matrix of shifted images: the rows are
// output channels, the columns pixels of all images, and the depth runs over the taps and, within a tap, the channels.

/// Sixteen output channels are the fewest that a tile has. One thread for each column, whose pixel it copies.
using WideConvolution = Tile<64, 256, 8, 3, 2, 4, 1, 2>;
using SlimConvolution = Tile<16, 128, 8, 4, 1, 4, 1, 4>;

/// Sizes of x [batch, channels_in, rows, cols], taps [channels_out, group_in, k_rows, k_cols] and y; a group of outputs
/// sees group_in channels.
struct Convolution {
    int channels_in, channels_out, groups, rows, cols, out_rows, out_cols, k_rows, k_cols, stride, padding, dilation;

    __device__ int group_in() const { return channels_in / groups; }
    __device__ int group_out() const { return channels_out / groups; }
    __device__ int taps() const { return k_rows * k_cols; }
    __device__ long long plane() const { return static_cast<long long>(rows) * cols; }
    __device__ long long out_plane() const { return static_cast<long long>(out_rows) * out_cols; }
};

/// Where a depth tile's taps and pixels stand in a stage of an FP32 tile: both depth by depth.
template <class T>
struct DepthMajor {
    __device__ static int tap(int k, int line) { return k * T::PITCH_M + line; }
    __device__ static int pixel(int k, int column) { return T::DEPTH * T::PITCH_M + k * T::PITCH_N + column; }
};

/// Starts the copies of the depth tiles, tap after tap: of the taps, and of the pixels under them.
template <class T, class Layout>
struct ConvolutionCopies {
    static_assert(T::N == T::THREADS);
    static constexpr int APART = T::THREADS / T::DEPTH, COUNT = T::M / APART;
    const Convolution& sizes;
    const float *taps, *image;       // those of this thread's first output channel, and of its pixel's image and group
    const float *tap_from, *pixel_from;
    int lines, top, left;            // output channels from this thread's first on; where its window begins
    bool pixel, inside;
    int tap = -1, tiles = 0, depth = 0, u = 0, v = -1;

    __device__ ConvolutionCopies(const Convolution& sizes, const float* x, const float* all, int channel, int channels,
                                 long long pixel_at, long long pixels)
        : sizes(sizes), lines(channels - static_cast<int>(threadIdx.x) / T::DEPTH), pixel(pixel_at < pixels) {
        const long long width = static_cast<long long>(sizes.group_in()) * sizes.taps();
        taps = all + (channel + threadIdx.x / T::DEPTH) * width;
        const long long at = pixel ? pixel_at : 0, number = at / sizes.out_plane();
        const int rest = static_cast<int>(at - number * sizes.out_plane());
        const int group = channel / sizes.group_out();
        image = x + (number * sizes.channels_in + group * sizes.group_in()) * sizes.plane();
        top = rest / sizes.out_cols * sizes.stride - sizes.padding;
        left = rest % sizes.out_cols * sizes.stride - sizes.padding;
    }

    __device__ void next() {
        if (++tap >= sizes.taps()) return;
        if (++v == sizes.k_cols) v = 0, ++u;
        const int row = top + u * sizes.dilation, column = left + v * sizes.dilation;
        inside = pixel && row >= 0 && row < sizes.rows && column >= 0 && column < sizes.cols;
        pixel_from = image + static_cast<long long>(row) * sizes.cols + column;
        tap_from = taps + tap;
        depth = sizes.group_in();
        tiles = depth_tiles<T>(depth);
    }

    __device__ static constexpr bool whole() { return false; }

    template <bool WHOLE>
    __device__ void copy(float* stage, int, int) { copy(stage); }

    __device__ void copy(float* stage) {
        const int own = threadIdx.x % T::DEPTH, line = threadIdx.x / T::DEPTH, count = sizes.taps();
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const float* const from = tap_from + (static_cast<long long>(i) * APART * sizes.group_in() + own) * count;
            put(stage + Layout::tap(own, line + i * APART), from, own < depth && i * APART < lines);
        }
        const float* from = pixel_from;
#pragma unroll
        for (int k = 0; k < T::DEPTH; ++k, from += sizes.plane())
            put(stage + Layout::pixel(k, static_cast<int>(threadIdx.x)), from, inside && k < depth);
        pixel_from = from;
        tap_from += T::DEPTH * count;
        depth -= T::DEPTH;
        --tiles;
    }

    /// Zero where there is nothing; no branch decides.
    __device__ static void put(float* to, const float* from, bool there) {
        __pipeline_memcpy_async(to, from, 4, there ? 0 : 4);
    }
};

/// y = f(sum + bias of its channel).
template <class T, class F>
__device__ void store_channels(const Convolution& sizes, const float* bias, float* y, int channel, int channels,
                               long long first, long long pixels, const Place<T>& place, F f,
                               const float (&sum)[T::ROWS][T::COLS]) {
    const long long plane = sizes.out_plane();
#pragma unroll
    for (int j = 0; j < T::COLS; j += 4) {
        const long long at = first + place.col_at(j), number = at / plane;
        float* const to = y + (number * sizes.channels_out + channel) * plane + (at - number * plane);
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i) {
            const int row = place.row_at(i);
            if (row >= channels || at >= pixels) continue;
            const float added = __ldg(bias + channel + row);
            float out[4];
#pragma unroll
            for (int c = 0; c < 4; ++c) out[c] = f(sum[i][j + c] + added);
            if (plane % 4 == 0) {
                store4(to + row * plane, make_float4(out[0], out[1], out[2], out[3]));
                continue;
            }
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                if (at + c >= pixels) continue;
                const long long later = (at + c) / plane;  // the next image may begin among the four
                y[(later * sizes.channels_out + channel + row) * plane + (at + c - later * plane)] = out[c];
            }
        }
    }
}

/// A block's tile: which output channels of a group, and which pixels. Blocks that follow one another take the same
/// pixels for different output channels.
template <class T>
struct ConvolutionTile {
    int channel, channels;  // the first one, and how many the group has from there on
    long long first;        // of the pixels

    __device__ explicit ConvolutionTile(const Convolution& sizes) {
        const int of_group = (sizes.group_out() + T::M - 1) / T::M, tile = blockIdx.x % (of_group * sizes.groups);
        const int in_group = tile % of_group * T::M;
        channel = tile / of_group * sizes.group_out() + in_group;
        channels = sizes.group_out() - in_group;
        first = static_cast<long long>(blockIdx.x / (of_group * sizes.groups)) * T::N;
    }
};

template <class T, class F>
__device__ void convolve_channels(const Convolution& sizes, const float* x, const float* taps, const float* bias,
                                  float* y, long long pixels, F f) {
    __shared__ __align__(16) float shared[T::SHARED];
    const ConvolutionTile<T> tile(sizes);
    const Place<T> place;
    ConvolutionCopies<T, DepthMajor<T>> source(sizes, x, taps, tile.channel, tile.channels, tile.first + threadIdx.x,
                                               pixels);
    float sum[T::ROWS][T::COLS] = {};
    multiply_tiles<T>(source, sizes.taps() * depth_tiles<T>(sizes.group_in()), shared, place, sum);
    store_channels<T>(sizes, bias, y, tile.channel, tile.channels, tile.first, pixels, place, f, sum);
}

// On the tensor cores: operands rounded to TF32, sums in FP32.

using TensorConvolution = TensorTile<Tf32, 64, 128, 4, 4, 2, 2, 3>;

template <class T_>
struct ConvolutionOperands {
    using T = T_;
    using Word = float;
    using Left = Operand<T, T::M, true, 4>;
    using Right = Operand<T, T::N, false, 4>;
    static constexpr int STAGE = Left::SIZE + Right::SIZE;

    /// Taps line by line, pixels depth by depth.
    struct Layout {
        __device__ static int tap(int k, int line) { return line * Left::PITCH + k; }
        __device__ static int pixel(int k, int column) { return Left::SIZE + k * Right::PITCH + column; }
    };
    ConvolutionCopies<T, Layout> copies;

    __device__ void copy(float* stage) {
        if (copies.tiles == 0) copies.next();
        copies.copy(stage);
    }
};

/// `shared` has room for T::STAGES stages.
template <class T, class F>
__device__ void convolve_on_tensor_cores(const Convolution& sizes, const float* x, const float* taps, const float* bias,
                                         float* y, long long pixels, float* shared, F f) {
    using O = ConvolutionOperands<T>;
    const ConvolutionTile<T> tile(sizes);
    O source = {{sizes, x, taps, tile.channel, tile.channels, tile.first + threadIdx.x, pixels}};
    float sum[T::ROWS][2 * T::COLS][4] = {};
    multiply_stages<MmaFragments<O>>(source, sizes.taps() * depth_tiles<T>(sizes.group_in()), shared, sum);
    const WarpPlace<T> place;
    const unsigned int plane = static_cast<unsigned int>(sizes.out_plane());
    const long long number = tile.first / plane;
    const unsigned int rest = static_cast<unsigned int>(tile.first - number * plane);
    const auto place_of = [&](int column) {  // in the first of this tile's channels
        const unsigned int later = (rest + column) / plane;
        return y + ((number + later) * sizes.channels_out + tile.channel) * plane + (rest + column - later * plane);
    };
#pragma unroll
    for (int j = 0; j < 2 * T::COLS; ++j) {
        const int column = place.col + 8 * j + warp_lane() % 4 * 2;
        if (tile.first + column >= pixels) continue;
        float* const to = place_of(column);
        float* const next = plane % 2 == 0 || tile.first + column + 1 >= pixels ? nullptr : place_of(column + 1);
#pragma unroll
        for (int i = 0; i < 2 * T::ROWS; ++i) {
            const int row = place.row + 8 * i + warp_lane() / 4;
            if (row >= tile.channels) continue;
            const float added = __ldg(bias + tile.channel + row);
            const float one = f(sum[i / 2][j][i % 2 * 2] + added), two = f(sum[i / 2][j][i % 2 * 2 + 1] + added);
            const long long there = static_cast<long long>(row) * plane;
            if (plane % 2 == 0) {
                *reinterpret_cast<float2*>(to + there) = make_float2(one, two);
            } else {
                to[there] = one;
                if (next != nullptr) next[there] = two;
            }
        }
    }
}
