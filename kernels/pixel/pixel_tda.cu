#include "persistence.cuh"
#include "reduce.cuh"

// Topology of the set of pixels above a threshold. A warp sees 32 columns of a row as bits, with one more on each side,
// so that windows and neighbours are logic on words; it walks STRIP rows and reads each once. Components are joined first
// within a block's tile, in shared memory, and then along the tiles' borders.

constexpr int STRIP = 16, WARPS = 8, ACROSS = 32 * WARPS, TILE = STRIP * ACROSS, BATCH = 8;

/// The bit of column c - 1 + k of lane c's row is bit c + k.
using Bits = unsigned long long;

struct Image {
    const float* x;
    int rows, cols;
    float threshold;

    /// This warp's parts of N rows from `row` on: lane l's own pixel is bit l + 1. All loads come first.
    template <int N>
    __device__ void bits(int row, int first, Bits (&out)[N]) const {
        const int lane = threadIdx.x % 32, column = first + lane, beside = lane == 0 ? first - 1 : first + 32;
        const bool own = column < cols, edge = (lane == 0 || lane == 31) && beside >= 0 && beside < cols;
        float at[N], next[N];
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const bool there = row + k >= 0 && row + k < rows;
            const float* const from = x + static_cast<long long>(row + k) * cols;
            at[k] = own && there ? from[column] : threshold;
            next[k] = edge && there ? from[beside] : threshold;
        }
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const unsigned int inner = __ballot_sync(FULL_WARP, at[k] > threshold);
            const unsigned int outer = __ballot_sync(FULL_WARP, next[k] > threshold);
            out[k] = Bits(inner) << 1 | (outer & 1) | Bits(outer >> 31) << 33;
        }
    }
    __device__ Bits bits(int row, int first) const {
        Bits one[1];
        bits(row, first, one);
        return one[0];
    }
};

/// Where a warp works: its first column, and its strip of rows. Strips reach one row and one column beyond the image.
struct Part {
    int first, begin, end;

    __device__ explicit Part(int rows) {
        first = (blockIdx.x * WARPS + threadIdx.x / 32) * 32;
        begin = blockIdx.y * STRIP;
        end = min(begin + STRIP, rows + 1);
    }
};

/// Four times the Euler characteristic of the 2x2 windows whose lower right pixels are the warp's: Q1 - Q3 -+ 2 QD.
template <bool EIGHT>
__device__ int window_sum(Bits above, Bits here) {
    const unsigned int a = here >> 1, b = here, c = above >> 1, d = above;
    const unsigned int odd = a ^ b ^ c ^ d, pair = (a & b) | (c & d), diagonal = (a ^ b) & (c ^ d) & (a ^ c);
    return __popc(odd & ~pair) - __popc(odd & pair) + (EIGHT ? -2 : 2) * __popc(diagonal);
}

/// The window sums of a warp's strip, and its rows' bits by `keep(row in the strip, bits)`.
template <bool EIGHT, class Keep>
__device__ int walk_strip(const Image& image, const Part& part, Keep keep) {
    if (part.first > image.cols) return 0;
    int sum = 0;
    Bits above = image.bits(part.begin - 1, part.first), here[BATCH];
    for (int row = 0; row < part.end - part.begin; row += BATCH) {
        image.bits(part.begin + row, part.first, here);
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (part.begin + row + k < part.end) sum += window_sum<EIGHT>(above, here[k]);
            keep(row + k, here[k]);
            above = here[k];
        }
    }
    return sum;
}

/// Adds the warps' sums, the same in each lane, to *to.
__device__ inline void add_sums(int sum, unsigned long long* to) {
    const int total = block_reduce(threadIdx.x % 32 == 0 ? sum : 0, Sum{}, 0);
    if (threadIdx.x == 0) atomicAdd(to, static_cast<unsigned long long>(static_cast<long long>(total)));
}

__device__ unsigned int arrived;

// The Euler characteristic, a quarter of the window sum. `sums` is zero before, and after.
template <bool EIGHT>
__global__ void __launch_bounds__(256)
    tda_euler(const float* x, long long* euler, unsigned long long* sums, int rows, int cols, float threshold) {
    add_sums(walk_strip<EIGHT>({x, rows, cols, threshold}, Part(rows), [](int, Bits) {}), sums);
    if (!last_block(&arrived, gridDim.x * gridDim.y) || threadIdx.x > 0) return;
    *euler = static_cast<long long>(atomicExch(sums, 0ull)) / 4;
}

/// The root of a pixel while others are being joined: a parent only ever becomes a smaller one of the same component.
__device__ inline int root_of(volatile int* parent, int pixel) {
    for (int next = parent[pixel]; next != pixel; next = parent[pixel]) pixel = next;
    return pixel;
}

/// Joins two components: the larger root gets the smaller one as its parent.
__device__ inline void join(int* parent, long long one, long long other) {
    int a = root_of(parent, static_cast<int>(one)), b = root_of(parent, static_cast<int>(other));
    while (a != b) {
        const int high = max(a, b), low = min(a, b);
        const int held = atomicMin(parent + high, low);
        if (held == high) return;
        a = root_of(parent, held);
        b = low;
    }
}

/// Joins a pixel of a tile with those before it in the tile, each pair of runs as rarely as the neighbours tell. `left`
/// and `right` say whether the tile has such neighbours; runs within a warp's columns are joined already.
template <bool EIGHT>
__device__ void join_in_tile(int* parent, int pixel, Bits above, Bits here, bool has_row, bool left, bool right) {
    const int lane = threadIdx.x % 32, now = here >> lane & 7, up = has_row ? above >> lane & 7 : 0;  // left 1, own 2
    if (!(now & 2)) return;
    if (lane == 0 && left && now & 1) join(parent, pixel, pixel - 1);
    if (up & 2) {
        if ((now & 1 & up) == 0) join(parent, pixel, pixel - ACROSS);
    } else if (EIGHT) {
        if (left && up & 1 && !(now & 1)) join(parent, pixel, pixel - ACROSS - 1);
        if (right && up & 4 && !(now & 4)) join(parent, pixel, pixel - ACROSS + 1);
    }
}

// The components of each block's tile: every pixel's parent is its component's first pixel in the tile, -1 where it is
// not above. sizes[p] is, for such a first pixel, how many pixels follow it; 0 elsewhere. sums[0] gets the window sum.
template <bool EIGHT, bool SIZES>
__global__ void __launch_bounds__(256) tda_tiles(const float* x, int* parent, int* sizes, unsigned long long* sums,
                                                 int rows, int cols, float threshold) {
    __shared__ Bits row_bits[STRIP][WARPS];
    __shared__ int local[TILE], count[SIZES ? TILE : 1];
    const Part part(rows);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const auto keep = [&](int row, Bits here) {
        if (lane == 0) row_bits[row][warp] = here;
        const unsigned int gaps = ~static_cast<unsigned int>(here >> 1) & ((1u << lane) - 1);
        const int line = row * ACROSS + 32 * warp;
        local[line + lane] = here >> (lane + 1) & 1 ? line + 32 - __clz(gaps) : -1;
        if (SIZES) count[line + lane] = 0;
    };
    add_sums(walk_strip<EIGHT>({x, rows, cols, threshold}, part, keep), sums);
    const int column = part.first + lane, height = min(STRIP, rows - part.begin);
    __syncthreads();
    if (part.first < cols)
        for (int row = 0; row < height; ++row)
            join_in_tile<EIGHT>(local, row * ACROSS + static_cast<int>(threadIdx.x),
                                row_bits[row > 0 ? row - 1 : 0][warp], row_bits[row][warp], row > 0, threadIdx.x > 0,
                                threadIdx.x < ACROSS - 1);
    __syncthreads();
    for (int row = 0; row < height && column < cols; ++row) {
        const int at = row * ACROSS + static_cast<int>(threadIdx.x), own = local[at];
        const int root = own < 0 ? -1 : root_of(local, own);
        const long long line = static_cast<long long>(part.begin) * cols + column - static_cast<int>(threadIdx.x);
        const long long place = line + static_cast<long long>(root / ACROSS) * cols + root % ACROSS;
        parent[line + static_cast<long long>(row) * cols + threadIdx.x] = root < 0 ? -1 : static_cast<int>(place);
        const unsigned int run = static_cast<unsigned int>(row_bits[row][warp] >> 1) >> lane;
        const bool starts = own >= 0 && (lane == 0 || !(row_bits[row][warp] >> lane & 1));
        if (SIZES && starts) atomicAdd(count + root, ~run == 0 ? 32 : __ffs(static_cast<int>(~run)) - 1);
    }
    if (!SIZES) return;
    __syncthreads();
    for (int row = 0; row < height && column < cols; ++row)
        sizes[static_cast<long long>(part.begin + row) * cols + column] = count[row * ACROSS + threadIdx.x];
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
// sizes[p] becomes the number of pixels of the component whose first pixel is p.
template <bool SIZES>
__global__ void __launch_bounds__(256) tda_labels(const int* parent, int* labels, int* sizes, unsigned long long* sums,
                                                  long long* betti, long long pixels) {
    int roots = 0;
    const long long all = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < pixels; i += all) {
        int root = parent[i];
        roots += root == i;
        if (root >= 0)
            for (int next = parent[root]; next != root; next = parent[root]) root = next;
        labels[i] = root + 1;
        if (SIZES && root >= 0 && root != i && sizes[i] > 0) {
            atomicAdd(sizes + root, sizes[i]);
            sizes[i] = 0;
        }
    }
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
    const Part part(rows);
    const int lane = threadIdx.x % 32, column = part.first + lane;
    if (part.first >= cols) return;
    Bits above = image.bits(part.begin - 1, part.first), here = image.bits(part.begin, part.first), next[BATCH];
    for (int row = part.begin; row < min(part.end, rows); ++row) {
        const int k = (row - part.begin) % BATCH;
        if (k == 0) image.bits(row + 1, part.first, next);
        Bits below = 0;
#pragma unroll
        for (int i = 0; i < BATCH; ++i)
            if (i == k) below = next[i];
        const unsigned int up = above >> lane & 7, now = here >> lane & 5, down = below >> lane & 7;
        const unsigned int turned = __brev(down) >> 29;  // the pixel opposite to each of `up`
        const int pairs = __popc(up & turned) + (now == 5);
        const int count = __popc(up) + __popc(now) + __popc(down);
        const long long at = static_cast<long long>(row) * cols + column;
        const float score = fmaf(0.1f, static_cast<float>(pairs), static_cast<float>(count));
        if (column < cols) map[at] = fmaf(0.01f, x[at], score);
        above = here;
        here = below;
    }
}
