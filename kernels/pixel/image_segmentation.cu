#include "reduce.cuh"
#include "vector_load.cuh"

// Four labels by three cuts, then the label that more than `majority` of the in-image neighbours share. A label is a one
// in the byte of its number, so that one 32-bit sum of neighbours counts all four labels; no label counts for none.

constexpr int WIDTH = 4, HEIGHT = 8;  // neighbouring columns and rows of a thread
constexpr unsigned int EVERY = 0x01010101u;

__device__ inline int number_of(unsigned int label) { return static_cast<int>(label * 0x00010203u >> 24); }

/// The cuts 1.5 t, t and 0.5 t; a value on a cut belongs above it where INCLUSIVE. A NaN is above nothing.
template <bool INCLUSIVE>
struct Cuts {
    float high, middle, low;

    __device__ explicit Cuts(float threshold) : high(1.5f * threshold), middle(threshold), low(0.5f * threshold) {}

    __device__ static bool above(float x, float cut) { return INCLUSIVE ? x >= cut : x > cut; }

    __device__ unsigned int label(float x) const {
        unsigned int label = above(x, low) ? 1u << 24 : 1u;
        label = above(x, middle) ? 1u << 16 : label;
        return above(x, high) ? 1u << 8 : label;
    }
};

/// One row of a thread's columns, and of the column before the warp's (lanes 0 to 15) or behind them (lanes 16 to 31).
template <class T>
struct Row {
    T own[WIDTH], beside;
};

/// Where a thread reads and writes. Every address is a valid one, so that nothing branches: what lies outside the image
/// is read from its border and becomes no label.
template <bool ALIGNED>
struct Columns {
    int first, cols, beside;
    bool none_beside, leftmost, rightmost;  // no column beside the warp's; neighbours on that side are not in the warp

    __device__ explicit Columns(int cols) : cols(cols) {
        const int lane = threadIdx.x % 32;
        first = WIDTH * (blockIdx.x * blockDim.x + threadIdx.x);
        beside = first + WIDTH * (lane < 16 ? -lane : 32 - lane) - (lane < 16 ? 1 : 0);
        none_beside = beside < 0 || beside >= cols;
        beside = min(max(beside, 0), cols - 1);
        leftmost = lane == 0;
        rightmost = lane == 31 || first + WIDTH >= cols;
    }

    __device__ Row<float> read(const float* row) const {
        Row<float> x;
        if constexpr (ALIGNED) {
            const float4 v = load4(row + min(first, cols - WIDTH));
            x.own[0] = v.x, x.own[1] = v.y, x.own[2] = v.z, x.own[3] = v.w;
        } else {
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) x.own[c] = row[min(first + c, cols - 1)];
        }
        x.beside = row[beside];
        return x;
    }

    template <class Cut>
    __device__ Row<unsigned int> labels(const Row<float>& x, const Cut& cuts, bool inside) const {
        Row<unsigned int> to;
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) to.own[c] = inside && (ALIGNED || first + c < cols) ? cuts.label(x.own[c]) : 0u;
        to.beside = inside && !none_beside ? cuts.label(x.beside) : 0u;
        return to;
    }

    template <class Label>
    __device__ void write(Label* row, const int (&value)[WIDTH]) const {
        if constexpr (ALIGNED) {
            if (first >= cols) return;
            if constexpr (sizeof(Label) == 1)
                *reinterpret_cast<uchar4*>(row + first) = make_uchar4(value[0], value[1], value[2], value[3]);
            else *reinterpret_cast<int4*>(row + first) = make_int4(value[0], value[1], value[2], value[3]);
        } else {
#pragma unroll
            for (int c = 0; c < WIDTH; ++c)
                if (first + c < cols) row[first + c] = static_cast<Label>(value[c]);
        }
    }

    /// The labels of `here` after the vote of their neighbours. All lanes of the warp call it.
    __device__ void vote(const Row<unsigned int>& above, const Row<unsigned int>& here, const Row<unsigned int>& below,
                         unsigned int short_of_majority, int (&label)[WIDTH]) const {
        unsigned int sum[WIDTH + 2];  // over the three rows, with a column on each side
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) sum[c + 1] = above.own[c] + here.own[c] + below.own[c];
        const unsigned int outside = above.beside + here.beside + below.beside;
        const unsigned int before = __shfl_up_sync(FULL_WARP, sum[WIDTH], 1);
        const unsigned int behind = __shfl_down_sync(FULL_WARP, sum[1], 1);
        sum[0] = leftmost ? outside : before;
        sum[WIDTH + 1] = !rightmost ? behind : threadIdx.x % 32 == 31 ? outside : 0u;
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            const unsigned int counts = (sum[c] + sum[c + 1] + sum[c + 2]) + (short_of_majority - here.own[c]);
            const unsigned int most = counts & EVERY << 7;
            label[c] = number_of(most != 0 ? most >> 7 : here.own[c]);
        }
    }
};

/// HEIGHT rows of WIDTH columns a thread. All rows are read before the first is labelled, and neighbouring tiles follow
/// each other in the grid: on an H200 that is 0.91 to 0.93 of a copy's rate, walking down long strips was 0.78 to 0.82.
template <bool INCLUSIVE, bool ALIGNED, class Label>
__global__ void __launch_bounds__(128, 6)
    image_segmentation(const float* x, Label* labels, float threshold, int majority, int rows, int cols) {
    const Cuts<INCLUSIVE> cuts(threshold);
    const Columns<ALIGNED> columns(cols);
    const unsigned int short_of_majority = (127 - majority) * EVERY;
    for (int begin = blockIdx.y * HEIGHT; begin < rows; begin += gridDim.y * HEIGHT) {
        Row<float> read[HEIGHT + 2];
#pragma unroll
        for (int i = 0; i < HEIGHT + 2; ++i)
            read[i] = columns.read(x + static_cast<long long>(min(max(begin + i - 1, 0), rows - 1)) * cols);
        __syncwarp();  // or the compiler moves loads down to their uses
        Row<unsigned int> above = columns.labels(read[0], cuts, begin > 0), here = columns.labels(read[1], cuts, true);
        Label* to = labels + static_cast<long long>(begin) * cols;
#pragma unroll
        for (int i = 0; i < HEIGHT; ++i, to += cols) {
            const Row<unsigned int> below = columns.labels(read[i + 2], cuts, begin + i + 1 < rows);
            int label[WIDTH];
            columns.vote(above, here, below, short_of_majority, label);
            if (begin + i < rows) columns.write(to, label);
            above = here;
            here = below;
        }
    }
}
