#pragma once

#include "images/strip_parts.cuh"

// Convolution, entropy in windows and labels of one tile by a block, for images of few pixels. A warp that walks down a
// strip by itself computes the rows under its first windows again and waits for each; here all threads convolve the
// tile's rows at once, and each warp then takes the windows of LABEL_ROWS rows. The labels vote in shared memory.

constexpr int LABEL_ROWS = 2;  // rows of labels of a warp; the tile's first and last row only vote

struct FilteredImage {
    const float *x, *taps;
    int rows, cols;

    __device__ bool has(int row, int col) const { return row >= 0 && row < rows && col >= 0 && col < cols; }

    /// The convolution at a pixel, zeros outside the image.
    template <int K>
    __device__ float at(int row, int col) const {
        const float* const from = x + static_cast<long long>(row - K / 2) * cols + col - K / 2;
        float sum = 0.0f;
#pragma unroll
        for (int u = 0; u < K; ++u)
#pragma unroll
            for (int v = 0; v < K; ++v) {
                const bool inside = has(row + u - K / 2, col + v - K / 2);
                const float pixel = inside ? __ldg(from + static_cast<long long>(u) * cols + v) : 0.0f;
                sum = fmaf(__ldg(taps + u * K + v), pixel, sum);
            }
        return sum;
    }

    /// Has the pixels of some rows brought to the L2; six lines hold those under a strip.
    __device__ void bring(int row, int count, int col) const {
        for (int i = threadIdx.x; i < 6 * count; i += blockDim.x)
            if (row + i / 6 >= 0 && row + i / 6 < rows)
                bring_to_l2(x + static_cast<long long>(row + i / 6) * cols + min(max(col + i % 6 * 32, 0), cols - 1));
    }
};

/// A block's tile: STRIP columns, and as many rows as its warps have less two. Any grid of one block per tile.
template <int K, int W, bool INCLUSIVE, class Label>
__device__ void segment_tile(const FilteredImage& image, Label* labels, float lo, float hi, float threshold, int bins,
                             int majority) {
    using In = Windows<W>;
    constexpr int PITCH = 4 * 31 + 2 * Codes<W>::WORDS;
    static_assert(In::COUNT == 4, "four windows a thread");
    extern __shared__ unsigned int shared[];
    unsigned int* const table = shared + In::TABLE;
    float* const bound = reinterpret_cast<float*>(table + In::TABLE);
    const unsigned int none = bins * STEP, size = none + STEP;
    char* const counters = reinterpret_cast<char*>(bound + (bins + 32) / 32 * 32);
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32;
    uint4* const votes = reinterpret_cast<uint4*>(counters + warps * size);  // of every row, lane and column of four
    unsigned short* const codes = reinterpret_cast<unsigned short*>(votes + warps * LABEL_ROWS * 32);
    const int across = (image.cols + STRIP - 1) / STRIP, height = warps * LABEL_ROWS - 2;
    const int begin = blockIdx.x / across * height - 1, strip = blockIdx.x % across * STRIP - 1;  // first row, column
    const int code_rows = warps * LABEL_ROWS + W - 1, top = begin - W / 2, left = strip - W / 2;
    image.bring(top - K / 2, code_rows + K - 1, left - K / 2);
    make_tables<W>(shared, table, bound, lo, hi, bins);
    Histogram<W> histogram(counters + warp * size + lane * 4, shared, none);
    const Levels level_of(bound, lo, hi, bins);
#pragma unroll 2
    for (int i = threadIdx.x; i < code_rows * PITCH; i += blockDim.x) {
        const int row = top + i / PITCH, col = left + i % PITCH;
        const float value = image.template at<K>(row, col);
        const int level = level_of(isnan(value) ? 0.0f : value);
        codes[i] = static_cast<unsigned short>(image.has(row, col) && !isnan(value) ? level * STEP : none);
    }
    __syncthreads();
    const auto row_of = [=](int row) { return Codes<W>(codes + row * PITCH + 4 * lane, Direct{}); };
    const int first = warp * LABEL_ROWS, col = strip + 4 * lane;
#pragma unroll 1
    for (int k = 0; k < W; ++k) histogram.enter(row_of(first + k));
    const Cuts<INCLUSIVE> cuts(threshold);
#pragma unroll 1
    for (int k = 0;; ++k) {
        float bits[4];
        unsigned int label[4];
        histogram.entropies(table, 1.0f, bits, Direct{});
#pragma unroll
        for (int c = 0; c < 4; ++c) label[c] = image.has(begin + first + k, col + c) ? cuts.label(bits[c]) : 0u;
        votes[(first + k) * 32 + lane] = make_uint4(label[0], label[1], label[2], label[3]);
        if (k == LABEL_ROWS - 1) break;
        histogram.slide(row_of(first + k), row_of(first + k + W));
    }
    __syncthreads();
    const auto voters = [=](int row, unsigned int (&label)[4]) {
        const uint4 all = votes[row * 32 + lane];
        label[0] = all.x, label[1] = all.y, label[2] = all.z, label[3] = all.w;
    };
    for (int row = max(first, 1); row < min(first + LABEL_ROWS, height + 1) && begin + row < image.rows; ++row) {
        unsigned int above[4], here[4], below[4];
        voters(row - 1, above), voters(row, here), voters(row + 1, below);
        int label[4];
        vote_in_strip(above, here, below, (127 - majority) * EVERY, label);
        write_in_strip(labels + static_cast<long long>(begin + row) * image.cols, col, image.cols, label);
    }
}
