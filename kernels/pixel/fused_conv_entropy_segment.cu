#include "label_vote.cuh"
#include "reduce.cuh"
#include "window_entropy.cuh"

// Convolution, entropy in windows and segmentation in one launch. A warp walks down a strip of the image: every step adds
// an image row to the convolution, gives the next row of codes to a ring in shared memory, slides the windows by it,
// labels their entropies and lets three rows of labels vote. What is not the image or the labels never leaves the SM.

constexpr int STRIP = 126;  // labels of a warp in a row: its 128 windows less one on each side, which only votes

/// The convolution of a strip, row after row: sums of the outputs that further rows will complete.
template <int K, int EACH>
struct FilteredRows {
    const float *x, *taps;
    int row, first, rows, cols;  // the next image row, the column of this lane's first output
    float pixel[EACH][K], sum[K - 1][EACH] = {}, done[EACH];

    __device__ FilteredRows(const float* x, const float* taps, int row, int first, int rows, int cols)
        : x(x), taps(taps), row(row - K / 2), first(first + threadIdx.x % 32), rows(rows), cols(cols) {
        for (int k = 0; k < K - 1; ++k) {
            fetch();
            add();
        }
    }

    /// The next image row on its way to the registers; zeros outside the image.
    __device__ void fetch() {
        const bool inside = row >= 0 && row < rows;
        const float* const line = x + static_cast<long long>(row) * cols;
#pragma unroll
        for (int i = 0; i < EACH; ++i)
#pragma unroll
            for (int v = 0; v < K; ++v) {
                const int col = first + 32 * i + v - K / 2;
                pixel[i][v] = inside && col >= 0 && col < cols ? __ldg(line + col) : 0.0f;
            }
        ++row;
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
    static constexpr int ROWS = W + 1, PITCH = 4 * 31 + 2 * Codes<W>::WORDS, EACH = (PITCH + 31) / 32;
    unsigned short* codes;
    unsigned int none;
    int next = 0, oldest = 0;

    /// Writes the next row's codes of the levels of `value`, `none` outside the image.
    __device__ void push(const float (&value)[EACH], bool inside, int first, int cols, float lo, float hi, int bins) {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const int place = threadIdx.x % 32 + 32 * i, col = first + place;
            const bool is_level = inside && col >= 0 && col < cols && !isnan(value[i]);
            if (place < PITCH) codes[next * PITCH + place] = is_level ? level_of(value[i], lo, hi, bins) * STEP : none;
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

/// Tables of the block: c log2 c, and what a sum gains when a count rises.
template <int W>
__device__ void make_tables(unsigned int* gain, unsigned int* table) {
    for (int c = threadIdx.x; c <= W * W; c += blockDim.x) table[c] = Windows<W>::times_log2(c);
    __syncthreads();
    for (int c = threadIdx.x; c <= W * W; c += blockDim.x) gain[c] = c < W * W ? table[c + 1] - table[c] : 0;
    __syncthreads();
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
    make_tables<W>(shared, table);
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32, across = (cols + STRIP - 1) / STRIP;
    const int strips = gridDim.x * warps / across, task = blockIdx.x * warps + warp;
    const int height = (rows + strips - 1) / strips, begin = task / across * height, end = min(rows, begin + height);
    if (task >= across * strips || begin >= end) return;
    const int strip = task % across * STRIP - 1, first = strip - W / 2, col = strip + threadIdx.x % 32 * 4;
    const unsigned int none = bins * STEP, size = none + STEP;  // as many counters as there are levels: more warps
    char* const counters = reinterpret_cast<char*>(table + In::TABLE);
    Histogram<W> histogram(counters + warp * size + threadIdx.x % 32 * 4, shared, none);
    Ring ring{reinterpret_cast<unsigned short*>(counters + warps * size) + warp * Ring::ROWS * Ring::PITCH, none};
    int code_row = begin - 1 - W / 2;
    FilteredRows<K, Ring::EACH> filtered(x, taps, code_row, first, rows, cols);
    const auto push = [&]() {
        filtered.add();
        ring.push(filtered.done, code_row >= 0 && code_row < rows, first, cols, lo, hi, bins);
        ++code_row;
    };
#pragma unroll 1
    for (int k = 0; k < W; ++k) {
        filtered.fetch();
        push();
        histogram.enter(ring.newest());
    }
    const Cuts<INCLUSIVE> cuts(threshold);
    unsigned int above[4] = {}, here[4] = {};
#pragma unroll 1
    for (int row = begin - 1;; ++row) {
        if (row < end) filtered.fetch();
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

/// Threads of a block at most: small taps and windows leave registers for twice as many.
template <int K, int W>
constexpr int MOST_THREADS = K == 3 && W <= 8 ? 384 : 192;

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
