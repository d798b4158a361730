#pragma once

#include "sums/reduce.cuh"
#include "arrays/vector_load.cuh"

// What of an image is above a threshold, as bits, read in bands of a warp: 128 columns, four of each lane side by side, and
// some rows. All of a band's loads are on their way before the first bit is needed.

constexpr int BAND = 8, BAND_COLUMNS = 128;  // rows and columns of a warp's band
constexpr int BANDS = 8;                     // of a block, one under another

struct Image {
    const float* x;
    int rows, cols;
    float threshold;

    __device__ float value(int row, int column) const {
        const bool there = row >= 0 && row < rows && column >= 0 && column < cols;
        return there ? __ldg(x + static_cast<long long>(row) * cols + column) : threshold;
    }
    __device__ bool in_fours() const { return cols % 4 == 0 && misalignment(x) == 0; }
    /// Four neighbours of a row; what is beyond the image is not above.
    __device__ float4 four(int row, int column, bool in_fours) const {
        if (!in_fours)
            return make_float4(value(row, column), value(row, column + 1), value(row, column + 2), value(row, column + 3));
        if (row < 0 || row >= rows || column >= cols) return make_float4(threshold, threshold, threshold, threshold);
        return load4(x + static_cast<long long>(row) * cols + column);
    }
    /// Writes an array of the image's shape; what is beyond the image is left out.
    __device__ void store(float* y, int row, int column, float4 v, bool in_fours) const {
        float* const to = y + static_cast<long long>(row) * cols + column;
        if (in_fours && column < cols) store4(to, v);
        if (in_fours) return;
        if (column < cols) to[0] = v.x;
        if (column + 1 < cols) to[1] = v.y;
        if (column + 2 < cols) to[2] = v.z;
        if (column + 3 < cols) to[3] = v.w;
    }
    /// Bits of the four, `apart` bits apart.
    __device__ unsigned int bits(float4 v, int apart) const {
        return (v.x > threshold ? 1u : 0u) | (v.y > threshold ? 1u << apart : 0u) | (v.z > threshold ? 1u << 2 * apart : 0u)
               | (v.w > threshold ? 1u << 3 * apart : 0u);
    }
};

/// The place of this warp's band: its first row, and the first of this lane's columns.
struct BandPlace {
    int row = (blockIdx.y * BANDS + threadIdx.x / 32) * BAND, column = blockIdx.x * BAND_COLUMNS + threadIdx.x % 32 * 4;

    __device__ int first_column() const { return blockIdx.x * BAND_COLUMNS; }
};

/// Bit k, in every lane: whether row `row` + k is above in `column`, for k < COUNT.
template <int COUNT>
__device__ unsigned int column_bits(const Image& image, int row, int column) {
    const int lane = threadIdx.x % 32;
    return __ballot_sync(FULL_WARP, lane < COUNT && image.value(row + lane, column) > image.threshold);
}

/// The lowest eight bits, four apart.
__device__ inline unsigned int spread(unsigned int bits) {
    bits = (bits | bits << 12) & 0x000f000fu;
    bits = (bits | bits << 6) & 0x03030303u;
    return (bits | bits << 3) & 0x11111111u;
}

/// Four times the Euler characteristic of the 2x2 windows whose lower right pixels are in `a` and whose lower left ones in
/// `b`, the upper ones in `c` and `d`: Q1 - Q3 -+ 2 QD.
template <bool EIGHT>
__device__ int window_sum(unsigned int a, unsigned int b, unsigned int c, unsigned int d) {
    const unsigned int odd = a ^ b ^ c ^ d, pair = (a & b) | (c & d), diagonal = (a ^ b) & (c ^ d) & (a ^ c);
    return __popc(odd & ~pair) - __popc(odd & pair) + (EIGHT ? -2 : 2) * __popc(diagonal);
}

/// That of the windows whose lower right pixels are this lane's of the band; bit 4 k + j of `own` is its j-th pixel in row
/// k. All lanes of the warp call it.
template <bool EIGHT>
__device__ int band_sum(const Image& image, BandPlace place, unsigned int& own) {
    static_assert(BAND == 8);  // a lane's pixels are the bits of one word, four of a row side by side
    const bool fours = image.in_fours();
    float4 v[BAND + 1];
#pragma unroll
    for (int k = 0; k <= BAND; ++k) v[k] = image.four(place.row - 1 + k, place.column, fours);
    const unsigned int beside = column_bits<BAND + 1>(image, place.row - 1, place.first_column() - 1);
    const unsigned int top = image.bits(v[0], 1);
    own = 0;
#pragma unroll
    for (int k = 0; k < BAND; ++k) own |= image.bits(v[k + 1], 1) << 4 * k;
    unsigned int left = __shfl_up_sync(FULL_WARP, own, 1) >> 3 & 0x11111111u;
    unsigned int top_left = __shfl_up_sync(FULL_WARP, top, 1) >> 3;
    if (threadIdx.x % 32 == 0) left = spread(beside >> 1), top_left = beside & 1;
    const unsigned int shifted = (own << 1 & 0xeeeeeeeeu) | left;
    return window_sum<EIGHT>(own, shifted, own << 4 | top, shifted << 4 | (top << 1 & 0xeu) | top_left);
}

/// Four neighbours of a row as the bytes 0 or 1 of `own`; `left` and `right` hold what is beside each of them.
struct ByteRow {
    unsigned int own, left, right;

    /// `beside_left` and `beside_right` are of the warp's first and last pixel. All lanes of the warp call it.
    __device__ ByteRow(unsigned int own, unsigned int beside_left, unsigned int beside_right) : own(own) {
        const int lane = threadIdx.x % 32;
        const unsigned int before = __shfl_up_sync(FULL_WARP, own, 1) >> 24, after = __shfl_down_sync(FULL_WARP, own, 1);
        left = own << 8 | (lane == 0 ? beside_left : before);
        right = own >> 8 | (lane == 31 ? beside_right : after) << 24;
    }
    __device__ unsigned int three() const { return left + own + right; }
};

/// Bytes: ten times the neighbours above the threshold, and the opposite pairs of them, of the pixels of `now`.
__device__ inline unsigned int neighbour_score(const ByteRow& up, const ByteRow& now, const ByteRow& down) {
    const unsigned int count = up.three() + now.left + now.right + down.three();
    const unsigned int beside = now.left & now.right;
    const unsigned int pairs = (up.left & down.right) + (up.own & down.own) + (up.right & down.left) + beside;
    return 10 * count + pairs;
}
