#include "persistence.cuh"
#include "reduce.cuh"
#include "union_find.cuh"

// Topology of the set of pixels above a threshold. A warp sees 32 columns of a row as bits; lane l keeps the word of the
// strip's row l, so that windows of all rows are logic on words at once. Components are joined first within a block's
// tile, in shared memory, and then along the tiles' borders.

constexpr int STRIP = 16, WARPS = 8, ACROSS = 32 * WARPS, TILE = STRIP * ACROSS, BATCH = 8;

/// The bit of column c - 1 + k of lane c's row is bit c + k.
using Bits = unsigned long long;

/// The bits of one row: own columns, and those beside them in bits 0 of `left` and `right`.
struct Word {
    unsigned int own, left, right;

    __device__ Bits bits() const { return Bits(own) << 1 | left | Bits(right) << 33; }
    /// That of another lane.
    __device__ Word of(int lane) const {
        const unsigned int beside = __shfl_sync(FULL_WARP, left | right << 1, lane);
        return {__shfl_sync(FULL_WARP, own, lane), beside & 1, beside >> 1};
    }
};

struct Image {
    const float* x;
    int rows, cols;
    float threshold;

    /// In lane l, 32 columns from `first` of row `row` + l, for COUNT rows.
    template <int COUNT>
    __device__ Word words(int row, int first) const {
        const int lane = threadIdx.x % 32;
        Word mine = {0, above(row + lane, first - 1), above(row + lane, first + 32)};
#pragma unroll
        for (int begin = 0; begin < COUNT; begin += BATCH) {
            float at[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; ++k) at[k] = value(row + begin + k, first + lane);
#pragma unroll
            for (int k = 0; k < BATCH; ++k) {
                const unsigned int word = __ballot_sync(FULL_WARP, at[k] > threshold);
                if (lane == begin + k) mine.own = word;
            }
        }
        return mine;
    }
    /// A row's bits in every lane: lane l's own pixel is bit l + 1.
    __device__ Bits bits(int row, int first) const {
        if (row < 0 || row >= rows) return 0;
        const int lane = threadIdx.x % 32, column = first + lane, beside = lane == 0 ? first - 1 : first + 32;
        const float* const from = x + static_cast<long long>(row) * cols;
        const bool own = column < cols && from[column] > threshold;
        const bool edge = (lane == 0 || lane == 31) && beside >= 0 && beside < cols && from[beside] > threshold;
        const unsigned int inner = __ballot_sync(FULL_WARP, own), outer = __ballot_sync(FULL_WARP, edge);
        return Bits(inner) << 1 | (outer & 1) | Bits(outer >> 31) << 33;
    }
    __device__ float value(int row, int column) const {
        const bool there = row >= 0 && row < rows && column >= 0 && column < cols;
        return there ? __ldg(x + static_cast<long long>(row) * cols + column) : threshold;
    }
    __device__ unsigned int above(int row, int column) const { return value(row, column) > threshold; }
};

/// This warp's first column.
__device__ inline int first_of_warp() { return (blockIdx.x * WARPS + threadIdx.x / 32) * 32; }

/// Four times the Euler characteristic of the 2x2 windows whose lower right pixels are in `a` and whose lower left ones in
/// `b`, the upper ones in `c` and `d`: Q1 - Q3 -+ 2 QD.
template <bool EIGHT>
__device__ int window_sum(unsigned int a, unsigned int b, unsigned int c, unsigned int d) {
    const unsigned int odd = a ^ b ^ c ^ d, pair = (a & b) | (c & d), diagonal = (a ^ b) & (c ^ d) & (a ^ c);
    return __popc(odd & ~pair) - __popc(odd & pair) + (EIGHT ? -2 : 2) * __popc(diagonal);
}

/// That of this lane's row under the row of the lane before, for lanes 1 to `count`. All lanes call it.
template <bool EIGHT>
__device__ int window_sum(Word here, int count) {
    const int lane = threadIdx.x % 32;
    const unsigned int a = here.own, b = here.own << 1 | here.left;
    const unsigned int c = __shfl_up_sync(FULL_WARP, a, 1), d = __shfl_up_sync(FULL_WARP, b, 1);
    return lane == 0 || lane > count ? 0 : window_sum<EIGHT>(a, b, c, d);
}

/// Adds the threads' sums to *to.
__device__ inline void add_sums(int sum, unsigned long long* to) {
    const int total = block_reduce(sum, Sum{}, 0);
    if (threadIdx.x == 0) atomicAdd(to, static_cast<unsigned long long>(static_cast<long long>(total)));
}

// The window sum: windows reach one row and one column beyond the image. Row after row in every lane is quicker here than
// a row a lane, which waits for all rows before it counts (22 against 29 us for 4096^2 on an H200).
template <bool EIGHT>
__global__ void __launch_bounds__(256)
    tda_windows(const float* x, unsigned long long* sums, int rows, int cols, float threshold) {
    const Image image = {x, rows, cols, threshold};
    const int first = first_of_warp(), begin = blockIdx.y * STRIP, end = min(begin + STRIP, rows + 1);
    int sum = 0;
    if (first <= cols) {
        Bits above = image.bits(begin - 1, first);
#pragma unroll 4
        for (int row = begin; row < end; ++row) {
            const Bits here = image.bits(row, first);
            sum += window_sum<EIGHT>(here >> 1, here, above >> 1, above);
            above = here;
        }
    }
    add_sums(threadIdx.x % 32 == 0 ? sum : 0, sums);
}

// The Euler characteristic, a quarter of the window sum.
extern "C" __global__ void tda_euler(const unsigned long long* sums, long long* euler) {
    *euler = static_cast<long long>(*sums) / 4;
}

__device__ unsigned int arrived;

/// Joins a pixel of a tile with those before it in the tile, each pair of runs as rarely as the neighbours tell; runs
/// within a warp's columns are joined already. Outside the tile no bit is set.
template <bool EIGHT>
__device__ void join_in_tile(int* parent, int pixel, Bits above, Bits here) {
    const int lane = threadIdx.x % 32, now = here >> lane & 7, up = above >> lane & 7;  // left 1, own 2, right 4
    if (!(now & 2)) return;
    if (lane == 0 && now & 1) join(parent, pixel, pixel - 1);
    if (up & 2) {
        if ((now & 1 & up) == 0) join(parent, pixel, pixel - ACROSS);
    } else if (EIGHT) {
        if (up & 1 && !(now & 1)) join(parent, pixel, pixel - ACROSS - 1);
        if (up & 4 && !(now & 4)) join(parent, pixel, pixel - ACROSS + 1);
    }
}

// The components of each block's tile: every pixel's parent is its component's first pixel in the tile, -1 where it is
// not above. sizes[p] is, for such a first pixel, how many pixels follow it; 0 elsewhere. sums[0] gets the window sum.
template <bool EIGHT, bool SIZES>
__global__ void __launch_bounds__(256) tda_tiles(const float* x, int* parent, int* sizes, unsigned long long* sums,
                                                 int rows, int cols, float threshold) {
    __shared__ unsigned int words[STRIP][WARPS + 2];
    __shared__ int local[TILE], count[SIZES ? TILE : 1];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, mine = static_cast<int>(threadIdx.x);
    const int first = first_of_warp(), begin = blockIdx.y * STRIP, column = first + lane, height = min(STRIP, rows - begin);
    const Image image = {x, rows, cols, threshold};
    const Word word = first <= cols ? image.words<STRIP + 1>(begin - 1, first) : Word{0, 0, 0};
    add_sums(window_sum<EIGHT>(word, min(STRIP, rows + 1 - begin)), sums);
    if (lane > 0 && lane <= STRIP) words[lane - 1][warp + 1] = word.own;
    if (mine < 2 * STRIP) words[mine / 2][mine % 2 * (WARPS + 1)] = 0;
    __syncthreads();
    for (int row = 0; row < STRIP; ++row) {
        const unsigned int own = words[row][warp + 1], gaps = ~own & ((1u << lane) - 1);
        local[row * ACROSS + mine] = own >> lane & 1 ? row * ACROSS + 32 * warp + 32 - __clz(gaps) : -1;
        if (SIZES) count[row * ACROSS + mine] = 0;
    }
    __syncthreads();
    const auto bits_of = [&](int row) {
        return Word{words[row][warp + 1], words[row][warp] >> 31, words[row][warp + 2] & 1}.bits();
    };
    Bits above = 0;
    for (int row = 0; row < height; ++row) {
        const Bits here = bits_of(row);
        join_in_tile<EIGHT>(local, row * ACROSS + mine, above, here);
        above = here;
    }
    __syncthreads();
    for (int row = 0; row < height && column < cols; ++row) {
        const int own = local[row * ACROSS + mine], root = own < 0 ? -1 : settled_root(local, own);
        const long long line = static_cast<long long>(begin) * cols + column - mine;
        const long long place = line + static_cast<long long>(root / ACROSS) * cols + root % ACROSS;
        parent[line + static_cast<long long>(row) * cols + mine] = root < 0 ? -1 : static_cast<int>(place);
        const unsigned int run = words[row][warp + 1] >> lane;
        const bool starts = own >= 0 && (lane == 0 || !(words[row][warp + 1] >> (lane - 1) & 1));
        if (SIZES && starts) atomicAdd(count + root, ~run == 0 ? 32 : __ffs(static_cast<int>(~run)) - 1);
    }
    if (!SIZES) return;
    __syncthreads();
    for (int row = 0; row < height && column < cols; ++row)
        sizes[static_cast<long long>(begin + row) * cols + column] = count[row * ACROSS + mine];
}

/// A pixel of the labelling so far, and whether it is above the threshold, which its parent tells.
struct Labelled {
    int* parent;
    int rows, cols;

    __device__ long long at(int row, int column) const { return static_cast<long long>(row) * cols + column; }
    __device__ bool above(int row, int column) const {
        return column >= 0 && column < cols && const_cast<volatile int*>(parent)[at(row, column)] >= 0;
    }
    __device__ void joined(int row, int column, int other_row, int other_column) const {
        join(parent, at(row, column), at(other_row, other_column));
    }
};

// Joins pixels across the borders of tiles: threads below `across` take a pixel under a border each, the others one to
// the right of a border.
template <bool EIGHT>
__global__ void __launch_bounds__(256) tda_join(int* parent, int rows, int cols, long long across, long long along) {
    const Labelled image = {parent, rows, cols};
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < across) {
        const int row = static_cast<int>(i / cols + 1) * STRIP, column = static_cast<int>(i % cols);
        if (!image.above(row, column)) return;
        const bool left = image.above(row, column - 1), up_left = image.above(row - 1, column - 1);
        if (image.above(row - 1, column)) {
            if (!(left && up_left)) image.joined(row, column, row - 1, column);
        } else if (EIGHT) {
            if (up_left && !left) image.joined(row, column, row - 1, column - 1);
            if (image.above(row - 1, column + 1) && !image.above(row, column + 1))
                image.joined(row, column, row - 1, column + 1);
        }
    } else if (i < across + along) {
        const long long rest = i - across;
        const int row = static_cast<int>(rest % rows), column = static_cast<int>(rest / rows + 1) * ACROSS;
        const bool own = image.above(row, column), left = image.above(row, column - 1);
        if (own && left) image.joined(row, column, row, column - 1);
        if (!EIGHT || row == 0 || own == left) return;
        if (own && image.above(row - 1, column - 1) && !image.above(row - 1, column))
            image.joined(row, column, row - 1, column - 1);
        if (left && image.above(row - 1, column) && !image.above(row - 1, column - 1))
            image.joined(row, column - 1, row - 1, column);
    }
}

// A component's label is one more than the index of its first pixel; betti: components, holes, Euler characteristic.
// sizes[p] becomes the number of pixels of the component whose first pixel is p. Four pixels a thread: neighbours mostly
// have the same parent, whose root is looked for once.
template <bool SIZES>
__global__ void __launch_bounds__(256) tda_labels(const int* parent, int* labels, int* sizes, unsigned long long* sums,
                                                  long long* betti, long long pixels) {
    const long long at = 4 * (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x);
    const bool whole = at + 4 <= pixels;
    int own[4], label[4], roots = 0, known = -1, root = -1;
    if (whole) {
        const int4 four = *reinterpret_cast<const int4*>(parent + at);
        own[0] = four.x, own[1] = four.y, own[2] = four.z, own[3] = four.w;
    } else {
        for (int k = 0; k < 4; ++k) own[k] = at + k < pixels ? parent[at + k] : -1;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (own[k] >= 0 && own[k] != known) root = settled_root(parent, own[k]);
        if (own[k] >= 0) known = own[k];
        roots += own[k] == at + k;
        label[k] = own[k] < 0 ? 0 : root + 1;
        if (!SIZES || own[k] < 0 || root == at + k || sizes[at + k] == 0) continue;
        atomicAdd(sizes + root, sizes[at + k]);
        sizes[at + k] = 0;
    }
    if (whole) *reinterpret_cast<int4*>(labels + at) = make_int4(label[0], label[1], label[2], label[3]);
    for (int k = 0; !whole && at + k < pixels; ++k) labels[at + k] = label[k];
    roots = block_reduce(roots, Sum{}, 0);
    if (threadIdx.x == 0) atomicAdd(sums + 1, static_cast<unsigned long long>(roots));
    if (!last_block(&arrived) || threadIdx.x > 0) return;
    const long long euler = static_cast<long long>(atomicExch(sums, 0ull)) / 4;
    const long long components = static_cast<long long>(atomicExch(sums + 1, 0ull));
    betti[0] = components, betti[1] = components - euler, betti[2] = euler;
}

// The older score: neighbours above the threshold, a tenth of the opposite pairs of them, a hundredth of the pixel.
extern "C" __global__ void __launch_bounds__(256)
    tda_map(const float* x, float* map, int rows, int cols, float threshold) {
    const Image image = {x, rows, cols, threshold};
    const int lane = threadIdx.x % 32, first = first_of_warp(), begin = blockIdx.y * STRIP, column = first + lane;
    if (first >= cols) return;
    const Word words = image.words<STRIP + 2>(begin - 1, first);
    Bits above = words.of(0).bits(), here = words.of(1).bits();
    for (int k = 0; k < min(STRIP, rows - begin); ++k) {
        const Bits below = words.of(k + 2).bits();
        const unsigned int up = above >> lane & 7, now = here >> lane & 5, down = below >> lane & 7;
        const unsigned int turned = __brev(down) >> 29;  // the pixel opposite to each of `up`
        const int pairs = __popc(up & turned) + (now == 5);
        const int count = __popc(up) + __popc(now) + __popc(down);
        const float score = fmaf(0.1f, static_cast<float>(pairs), static_cast<float>(count));
        const long long at = static_cast<long long>(begin + k) * cols + column;
        if (column < cols) map[at] = fmaf(0.01f, x[at], score);
        above = here;
        here = below;
    }
}
