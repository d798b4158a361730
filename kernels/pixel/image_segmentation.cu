#include "label_vote.cuh"
#include "reduce.cuh"
#include "union_find.cuh"
#include "vector_load.cuh"

constexpr int SPAN = 4, HEIGHT = 8;  // neighbouring columns and rows of a thread

/// One row of a thread's columns, and of the column before the warp's (lanes 0 to 15) or behind them (lanes 16 to 31).
template <class T>
struct Row {
    T own[SPAN], beside;
};

/// Where a thread reads and writes. Every address is a valid one, so that nothing branches: what lies outside the image
/// is read from its border and becomes no label.
template <bool ALIGNED>
struct Columns {
    int first, cols, beside;
    bool none_beside, leftmost, rightmost;  // no column beside the warp's; neighbours on that side are not in the warp

    __device__ explicit Columns(int cols) : cols(cols) {
        const int lane = threadIdx.x % 32;
        first = SPAN * (blockIdx.x * blockDim.x + threadIdx.x);
        beside = first + SPAN * (lane < 16 ? -lane : 32 - lane) - (lane < 16 ? 1 : 0);
        none_beside = beside < 0 || beside >= cols;
        beside = min(max(beside, 0), cols - 1);
        leftmost = lane == 0;
        rightmost = lane == 31 || first + SPAN >= cols;
    }

    __device__ Row<float> read(const float* row) const {
        Row<float> x;
        if constexpr (ALIGNED) {
            const float4 v = load4(row + min(first, cols - SPAN));
            x.own[0] = v.x, x.own[1] = v.y, x.own[2] = v.z, x.own[3] = v.w;
        } else {
#pragma unroll
            for (int c = 0; c < SPAN; ++c) x.own[c] = row[min(first + c, cols - 1)];
        }
        x.beside = row[beside];
        return x;
    }

    template <class Cut>
    __device__ Row<unsigned int> labels(const Row<float>& x, const Cut& cuts, bool inside) const {
        Row<unsigned int> to;
#pragma unroll
        for (int c = 0; c < SPAN; ++c) to.own[c] = inside && (ALIGNED || first + c < cols) ? cuts.label(x.own[c]) : 0u;
        to.beside = inside && !none_beside ? cuts.label(x.beside) : 0u;
        return to;
    }

    template <class Label>
    __device__ void write(Label* row, const int (&value)[SPAN]) const {
        if constexpr (ALIGNED) {
            if (first >= cols) return;
            if constexpr (sizeof(Label) == 1)
                *reinterpret_cast<uchar4*>(row + first) = make_uchar4(value[0], value[1], value[2], value[3]);
            else *reinterpret_cast<int4*>(row + first) = make_int4(value[0], value[1], value[2], value[3]);
        } else {
#pragma unroll
            for (int c = 0; c < SPAN; ++c)
                if (first + c < cols) row[first + c] = static_cast<Label>(value[c]);
        }
    }

    /// The labels of `here` after the vote of their neighbours. All lanes of the warp call it.
    __device__ void vote(const Row<unsigned int>& above, const Row<unsigned int>& here, const Row<unsigned int>& below,
                         unsigned int short_of_majority, int (&label)[SPAN]) const {
        unsigned int sum[SPAN + 2];  // over the three rows, with a column on each side
#pragma unroll
        for (int c = 0; c < SPAN; ++c) sum[c + 1] = above.own[c] + here.own[c] + below.own[c];
        const unsigned int outside = above.beside + here.beside + below.beside;
        const unsigned int before = __shfl_up_sync(FULL_WARP, sum[SPAN], 1);
        const unsigned int behind = __shfl_down_sync(FULL_WARP, sum[1], 1);
        sum[0] = leftmost ? outside : before;
        sum[SPAN + 1] = !rightmost ? behind : threadIdx.x % 32 == 31 ? outside : 0u;
#pragma unroll
        for (int c = 0; c < SPAN; ++c) label[c] = voted(sum[c] + sum[c + 1] + sum[c + 2], here.own[c], short_of_majority);
    }
};

/// HEIGHT rows of SPAN columns a thread. All rows are read before the first is labelled, and neighbouring tiles follow
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
            int label[SPAN];
            columns.vote(above, here, below, short_of_majority, label);
            if (begin + i < rows) columns.write(to, label);
            above = here;
            here = below;
        }
    }
}

// Regions: pixels of one label that hang together.

/// The labels as an image; what is beyond it has none.
struct Labels {
    const int* label;
    int rows, cols;

    __device__ long long at(int row, int column) const { return static_cast<long long>(row) * cols + column; }
    __device__ bool same(int own, int row, int column) const {
        return row >= 0 && column >= 0 && column < cols && label[at(row, column)] == own;
    }
};

/// A thread's pixel; a row begins with a warp of its own, so that lanes are neighbours.
struct RegionPixel {
    int row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
};

// parent[p] becomes the first pixel of p's run, as far as the warp sees it; sizes become 0.
extern "C" __global__ void __launch_bounds__(256)
    region_runs(const int* label, int* parent, int* sizes, int rows, int cols) {
    const Labels image = {label, rows, cols};
    const RegionPixel pixel;
    const int lane = threadIdx.x % 32;
    for (int row = pixel.row; row < rows; row += gridDim.y) {
        const bool there = pixel.column < cols;
        const long long at = image.at(row, pixel.column);
        const bool begins = lane == 0 || !there || !image.same(label[at], row, pixel.column - 1);
        const unsigned int starts = __ballot_sync(FULL_WARP, begins) & (2u << lane) - 1;
        if (there) parent[at] = static_cast<int>(at) - lane + 31 - __clz(static_cast<int>(starts)), sizes[at] = 0;
    }
}

// Joins runs with those before them, each pair as rarely as the neighbours tell.
template <bool EIGHT>
__global__ void __launch_bounds__(256) region_join(const int* label, int* parent, int rows, int cols) {
    const Labels image = {label, rows, cols};
    const RegionPixel pixel;
    const int column = pixel.column;
    if (column >= cols) return;
    for (int row = pixel.row; row < rows; row += gridDim.y) {
        const long long at = image.at(row, column);
        const int own = label[at];
        const bool left = image.same(own, row, column - 1), up_left = image.same(own, row - 1, column - 1);
        if (left && threadIdx.x % 32 == 0) join(parent, at, at - 1);
        if (image.same(own, row - 1, column)) {
            if (!(left && up_left)) join(parent, at, at - cols);
        } else if (EIGHT) {
            if (up_left && !left) join(parent, at, at - cols - 1);
            if (image.same(own, row - 1, column + 1) && !image.same(own, row, column + 1)) join(parent, at, at - cols + 1);
        }
    }
}

// regions[p]: one more than the index of the first pixel of p's region; sizes[r]: how many pixels has that of first pixel r.
extern "C" __global__ void __launch_bounds__(256)
    region_sizes(const int* parent, int* regions, int* sizes, int rows, int cols) {
    const RegionPixel pixel;
    for (int row = pixel.row; row < rows; row += gridDim.y) {
        const long long at = static_cast<long long>(row) * cols + pixel.column;
        const int root = pixel.column < cols ? settled_root(parent, static_cast<int>(at)) : -1;
        if (root >= 0) regions[at] = root + 1;
        const unsigned int alike = __match_any_sync(FULL_WARP, root);
        const bool first = __ffs(static_cast<int>(alike)) - 1 == static_cast<int>(threadIdx.x % 32);
        if (root >= 0 && first) atomicAdd(sizes + root, __popc(alike));
    }
}

// Regions of fewer than `least` pixels lose their label.
extern "C" __global__ void __launch_bounds__(256)
    region_labels(const int* label, const int* regions, const int* sizes, int* labels, int least, int rows, int cols) {
    const RegionPixel pixel;
    if (pixel.column >= cols) return;
    for (int row = pixel.row; row < rows; row += gridDim.y) {
        const long long at = static_cast<long long>(row) * cols + pixel.column;
        labels[at] = sizes[regions[at] - 1] >= least ? label[at] : 0;
    }
}
