#pragma once

#include "images/label_vote.cuh"
#include "tensor_cores/ptx.cuh"
#include "sums/reduce.cuh"
#include "images/window_entropy.cuh"

// What the fused forms of convolution, entropy in windows and labels share.

constexpr int STRIP = 126;  // labels of a warp in a row: its 128 windows less one on each side, which only votes

/// The levels of numbers: bound[k] is the least float of level k.
struct Levels {
    const float* bound;
    float lo, scale, bins;

    __device__ Levels(const float* bound, float lo, float hi, int bins)
        : bound(bound), lo(lo), scale(bins / (hi - lo)), bins(bins) {}

    /// The bound next to x decides, so that an estimate's rounding does not.
    __device__ int operator()(float x) const {
        const int nearest = __float2int_rn(fminf(fmaxf((x - lo) * scale, 0.0f), bins));
        return x >= bound[nearest] ? nearest : nearest - 1;
    }
};

/// The labels of `here` after the vote; those of a warp's first and last window have no meaning.
__device__ inline void vote_in_strip(const unsigned int (&above)[4], const unsigned int (&here)[4],
                                     const unsigned int (&below)[4], unsigned int short_of_majority, int (&label)[4]) {
    unsigned int sum[6];
#pragma unroll
    for (int c = 0; c < 4; ++c) sum[c + 1] = above[c] + here[c] + below[c];
    sum[0] = __shfl_up_sync(FULL_WARP, sum[4], 1);
    sum[5] = __shfl_down_sync(FULL_WARP, sum[1], 1);
#pragma unroll
    for (int c = 0; c < 4; ++c) label[c] = voted(sum[c] + sum[c + 1] + sum[c + 2], here[c], short_of_majority);
}

/// A thread's four columns of a row, as far as they are the strip's and the image's.
template <class Value, class From>
__device__ void write_in_strip(Value* row, int col, int cols, const From (&value)[4]) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        const int place = threadIdx.x % 32 * 4 + c;
        if (place >= 1 && place <= STRIP && col + c < cols) __stcs(row + col + c, static_cast<Value>(value[c]));
    }
}

/// Tables of the block: c log2 c, what a sum gains when a count rises, and the bounds of levels: none below the first,
/// and the last has no end, which a NaN says. The threads with no c of their own make the bounds.
template <int W>
__device__ void make_tables(unsigned int* gain, unsigned int* table, float* bound, float lo, float hi, int bins) {
    for (int c = threadIdx.x; c <= W * W; c += blockDim.x) table[c] = Windows<W>::times_log2(c);
    for (int k = blockDim.x - 1 - threadIdx.x; k <= bins; k += blockDim.x) {
        const double least = lo + k * (static_cast<double>(hi) - lo) / bins;
        const float near = static_cast<float>(least), from = near < least ? nextafterf(near, infinity()) : near;
        bound[k] = k == 0 ? -infinity() : k == bins ? __int_as_float(0x7fc00000) : from;
    }
    __syncthreads();
    for (int c = threadIdx.x; c <= W * W; c += blockDim.x) gain[c] = c < W * W ? table[c + 1] - table[c] : 0;
    __syncthreads();
}

/// Threads of a block at most: small taps and windows leave registers for more.
template <int K, int W>
constexpr int MOST_THREADS = K == 3 && W <= 8 ? 512 : 192;
