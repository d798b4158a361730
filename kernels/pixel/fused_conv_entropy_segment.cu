#include "images/image_tile.cuh"
#include "images/strip_parts.cuh"

// Convolution, entropy in windows and segmentation in one launch. A warp walks down a strip of the image: every step adds
// an image row to the convolution, gives the next row of codes to a ring in shared memory, slides the windows by it,
// labels their entropies and lets three rows of labels vote. What is not the image or the labels never leaves the SM.

/// The convolution of a strip, row after row: sums of the outputs that further rows will complete. One image row is
/// always on its way to the registers.
template <int K, int PITCH>
struct FilteredRows {
    static constexpr int EACH = (PITCH + 31) / 32;
    static_assert(EACH * K <= 64);
    const float *from, *taps;      // this lane's first pixel of the next image row
    int row, end, cols;            // the next image row, the end of those needed
    unsigned long long there = 0;  // a bit for each of a row's pixels that this lane needs and the image's columns have
    float pixel[EACH][K], sum[K - 1][EACH] = {}, done[EACH];

    __device__ FilteredRows(const float* x, const float* taps, int row, int end, int first, int cols)
        : taps(taps), row(row - K / 2), end(end), cols(cols) {
        const int lane = threadIdx.x % 32, col = first + lane - K / 2;
        from = x + static_cast<long long>(this->row) * cols + col;
#pragma unroll
        for (int i = 0; i < EACH; ++i)
#pragma unroll
            for (int v = 0; v < K; ++v) {
                const int at = col + 32 * i + v;
                const bool needed = lane + 32 * i < PITCH && at >= 0 && at < cols;
                there |= static_cast<unsigned long long>(needed) << (i * K + v);
            }
        fetch();
    }

    /// The first output then waits for one more row.
    __device__ void prime() {
#pragma unroll
        for (int k = 0; k < K - 1; ++k) {
            add();
            fetch();
        }
    }

    /// Whether the image's columns have the i-th output.
    __device__ bool has(int i) const { return there >> (i * K + K / 2) & 1; }

    /// The next image row on its way to the registers; zeros outside the image.
    __device__ void fetch() {
        const unsigned long long needed = row >= 0 && row < end ? there : 0;
#pragma unroll
        for (int i = 0; i < EACH; ++i)
#pragma unroll
            for (int v = 0; v < K; ++v) pixel[i][v] = needed >> (i * K + v) & 1 ? __ldg(from + 32 * i + v) : 0.0f;
        ++row;
        from += cols;
    }

    /// Adds the row fetched to the K outputs it belongs to; the oldest of them is then done.
    __device__ void add() {
#pragma unroll
        for (int u = K - 1; u >= 0; --u)
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                float total = u == 0 ? 0.0f : sum[u - 1][i];
#pragma unroll
                for (int v = 0; v < K; ++v) total = fmaf(__ldg(taps + u * K + v), pixel[i][v], total);
                (u == K - 1 ? done : sum[u])[i] = total;
            }
    }
};

/// The codes of W + 1 rows of a strip in shared memory: those of the windows and the one that enters next.
template <int W>
struct CodeRing {
    static constexpr int ROWS = W + 1, PITCH = 4 * 31 + 2 * Codes<W>::WORDS;
    unsigned short* codes;
    unsigned int none;
    int next = 0, oldest = 0;

    /// Writes the codes of a row's levels; `none` for a NaN, and outside the image. All are known before one is written,
    /// as no read of a bound passes a write.
    template <class Rows>
    __device__ void push(const Rows& filtered, bool inside, const Levels& level_of) {
        unsigned int code[Rows::EACH];
#pragma unroll
        for (int i = 0; i < Rows::EACH; ++i) {
            const float value = filtered.done[i];
            const int level = level_of(isnan(value) ? 0.0f : value);  // chosen, so that no branch parts the outputs
            code[i] = inside && filtered.has(i) && !isnan(value) ? level * STEP : none;
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < Rows::EACH; ++i) {
            const int place = threadIdx.x % 32 + 32 * i;
            if (place < PITCH) codes[next * PITCH + place] = static_cast<unsigned short>(code[i]);
        }
        next = next + 1 == ROWS ? 0 : next + 1;
        __syncwarp();
    }

    __device__ Codes<W> row(int slot) const {
        return Codes<W>(codes + slot * PITCH + 4 * (threadIdx.x % 32), Direct{});
    }
    __device__ Codes<W> newest() const { return row(next == 0 ? ROWS - 1 : next - 1); }
    __device__ Codes<W> pop() {
        const int slot = oldest;
        oldest = oldest + 1 == ROWS ? 0 : oldest + 1;
        return row(slot);
    }
};

/// Has the pixels under a strip's first rows brought to the L2, as a warp's own reads are one row ahead only.
__device__ inline void bring_first_rows(const float* x, int row, int first, int rows, int cols, int count) {
    const int part = threadIdx.x % 8, col = min(max(first + 32 * part, 0), cols - 1);  // six lines hold a strip's row
    for (int k = threadIdx.x % 32 / 8; k < count; k += 4)
        if (part < 6 && row + k >= 0 && row + k < rows) bring_to_l2(x + static_cast<long long>(row + k) * cols + col);
}

/// A block's strips of labels. With KEEP the entropies are stored too. Any grid of at least one warp per STRIP columns.
template <int K, int W, bool INCLUSIVE, bool KEEP, class Label>
__device__ void segment_strips(const float* x, const float* taps, Label* labels, float* entropy, float lo, float hi,
                               float threshold, int bins, int majority, int rows, int cols) {
    using In = Windows<W>;
    using Ring = CodeRing<W>;
    static_assert(In::COUNT == 4, "four windows a thread");
    extern __shared__ unsigned int shared[];
    unsigned int* const table = shared + In::TABLE;
    float* const bound = reinterpret_cast<float*>(table + In::TABLE);
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32, across = (cols + STRIP - 1) / STRIP;
    const int strips = gridDim.x * warps / across, task = blockIdx.x * warps + warp;
    const int height = (rows + strips - 1) / strips, begin = task / across * height, end = min(rows, begin + height);
    const int strip = task % across * STRIP - 1, first = strip - W / 2, col = strip + threadIdx.x % 32 * 4;
    const bool idle = task >= across * strips || begin >= end;
    int code_row = begin - 1 - W / 2;
    const int needed = idle ? 0 : min(rows, end - W / 2 + W + K / 2);  // the end of the image rows under the windows
    bring_first_rows(x, code_row - K / 2, first, needed, cols, W + K + 4);
    FilteredRows<K, Ring::PITCH> filtered(x, taps, code_row, needed, first, cols);
    make_tables<W>(shared, table, bound, lo, hi, bins);
    if (idle) return;
    const unsigned int none = bins * STEP, size = none + STEP;  // as many counters as there are levels: more warps
    char* const counters = reinterpret_cast<char*>(bound + (bins + 32) / 32 * 32);
    Histogram<W> histogram(counters + warp * size + threadIdx.x % 32 * 4, shared, none);
    Ring ring{reinterpret_cast<unsigned short*>(counters + warps * size) + warp * Ring::ROWS * Ring::PITCH, none};
    const Levels level_of(bound, lo, hi, bins);
    const auto push = [&]() {
        filtered.add();
        filtered.fetch();
        ring.push(filtered, code_row >= 0 && code_row < rows, level_of);
        ++code_row;
    };
    filtered.prime();
#pragma unroll 1
    for (int k = 0; k < W; ++k) {
        push();
        histogram.enter(ring.newest());
    }
    const Cuts<INCLUSIVE> cuts(threshold);
    unsigned int above[4] = {}, here[4] = {};
#pragma unroll 1
    for (int row = begin - 1;; ++row) {
        float bits[4];
        unsigned int below[4];
        histogram.entropies(table, 1.0f, bits, Direct{});
#pragma unroll
        for (int c = 0; c < 4; ++c)
            below[c] = row >= 0 && row < rows && col + c >= 0 && col + c < cols ? cuts.label(bits[c]) : 0u;
        if (KEEP && row >= begin && row < end)
            write_in_strip(entropy + static_cast<long long>(row) * cols, col, cols, bits);
        if (row > begin) {
            int label[4];
            vote_in_strip(above, here, below, (127 - majority) * EVERY, label);
            write_in_strip(labels + static_cast<long long>(row - 1) * cols, col, cols, label);
        }
        if (row == end) return;
#pragma unroll
        for (int c = 0; c < 4; ++c) above[c] = here[c], here[c] = below[c];
        push();
        const Codes<W> leaving = ring.pop();
        histogram.slide(leaving, ring.newest());
    }
}

// K x K taps, windows of W x W.
template <int K, int W, bool INCLUSIVE, class Label>
__global__ void __launch_bounds__(MOST_THREADS<K, W>, 1)
    fused_conv_entropy_segment(const float* x, const float* taps, Label* labels, float lo, float hi, float threshold,
                               int bins, int majority, int rows, int cols) {
    segment_strips<K, W, INCLUSIVE, false>(x, taps, labels, nullptr, lo, hi, threshold, bins, majority, rows, cols);
}

template <int K, int W, bool INCLUSIVE, class Label>
__global__ void __launch_bounds__(MOST_THREADS<K, W>, 1)
    fused_conv_entropy_map(const float* x, const float* taps, Label* labels, float* entropy, float lo, float hi,
                           float threshold, int bins, int majority, int rows, int cols) {
    segment_strips<K, W, INCLUSIVE, true>(x, taps, labels, entropy, lo, hi, threshold, bins, majority, rows, cols);
}

// Images that strips do not spread over the device: a block makes the codes of a tile, which its warps share.
template <int K, int W, bool INCLUSIVE, class Label>
__global__ void __launch_bounds__(MOST_THREADS<K, W>, 1)
    fused_conv_entropy_tile(const float* x, const float* taps, Label* labels, float lo, float hi, float threshold,
                            int bins, int majority, int rows, int cols) {
    segment_tile<K, W, INCLUSIVE>({x, taps, rows, cols}, labels, lo, hi, threshold, bins, majority);
}
