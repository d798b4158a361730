#include "images/joined_regions.cuh"
#include "images/label_vote.cuh"
#include "sums/reduce.cuh"
#include "images/tile_components.cuh"
#include "images/union_find.cuh"
#include "arrays/vector_load.cuh"

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

    __device__ Columns(int cols, int first) : first(first), cols(cols) {
        const int lane = threadIdx.x % 32;
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
            else if constexpr (sizeof(Label) == 2)
                *reinterpret_cast<ushort4*>(row + first) = make_ushort4(value[0], value[1], value[2], value[3]);
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

/// Labels HEIGHT rows from row `begin` on, and hands f each one's number, if there is such a row, and its labels. All rows
/// are read before the first is labelled. All lanes of the warp call it.
template <bool INCLUSIVE, bool ALIGNED, class F>
__device__ void vote_rows(const float* x, const Columns<ALIGNED>& columns, const Cuts<INCLUSIVE>& cuts,
                          unsigned int short_of_majority, int begin, int rows, F f) {
    Row<float> read[HEIGHT + 2];
#pragma unroll
    for (int i = 0; i < HEIGHT + 2; ++i)
        read[i] = columns.read(x + static_cast<long long>(min(max(begin + i - 1, 0), rows - 1)) * columns.cols);
    __syncwarp();  // or the compiler moves loads down to their uses
    Row<unsigned int> above = columns.labels(read[0], cuts, begin > 0), here = columns.labels(read[1], cuts, true);
#pragma unroll
    for (int i = 0; i < HEIGHT; ++i) {
        const Row<unsigned int> below = columns.labels(read[i + 2], cuts, begin + i + 1 < rows);
        int label[SPAN];
        columns.vote(above, here, below, short_of_majority, label);
        if (begin + i < rows) f(i, label);
        above = here;
        here = below;
    }
}

__device__ inline unsigned int short_of(int majority) { return (127 - majority) * EVERY; }

/// HEIGHT rows of SPAN columns a thread. Neighbouring tiles follow each other in the grid, which reads memory faster
/// than walking down long strips.
template <bool INCLUSIVE, bool ALIGNED, class Label>
__global__ void __launch_bounds__(128, 6)
    image_segmentation(const float* x, Label* labels, float threshold, int majority, int rows, int cols) {
    const Cuts<INCLUSIVE> cuts(threshold);
    const Columns<ALIGNED> columns(cols, SPAN * (blockIdx.x * blockDim.x + threadIdx.x));
    for (int begin = blockIdx.y * HEIGHT; begin < rows; begin += gridDim.y * HEIGHT) {
        Label* to = labels + static_cast<long long>(begin) * cols;
        vote_rows(x, columns, cuts, short_of(majority), begin, rows, [&](int, const int(&label)[SPAN]) {
            columns.write(to, label);
            to += cols;
        });
    }
}

// Regions: pixels of one label that hang together, first within a block's tile. One that does not reach the tile's border
// is known then; those that do, the open ones, are joined with each other, and what they become is written last.

constexpr int OPEN = 1 << 30, KEPT = 1 << 30;  // of a root's word, while counting and afterwards; ~number has KEPT
static_assert(HEIGHT == PATCH_ROWS && SPAN == PATCH_COLUMNS);

/// This block's tile.
struct RegionTile {
    int row, column, rows, cols;  // its first pixel's; the image's

    __device__ RegionTile(int rows, int cols) : rows(rows), cols(cols) {
        const int across = (cols + TILE_COLUMNS - 1) / TILE_COLUMNS;
        row = static_cast<int>(blockIdx.x) / across * TILE_ROWS;
        column = static_cast<int>(blockIdx.x) % across * TILE_COLUMNS;
    }
    /// f(row, column) for the pixels of a thread's patch beyond which the image goes on, but not the tile.
    template <class F>
    __device__ void at_borders(const Patch& patch, F f) const {
        const bool above = patch.warp == 0 && row > 0, left = patch.lane == 0 && column > 0;
        const bool below = patch.warp == TILE_THREADS / 32 - 1 && row + TILE_ROWS < rows;
        const bool right = patch.lane == 31 && column + TILE_COLUMNS < cols;
        for (int j = 0; above && j < SPAN; ++j) f(0, j);
        for (int j = 0; below && j < SPAN; ++j) f(HEIGHT - 1, j);
        for (int i = 0; left && i < HEIGHT; ++i) f(i, 0);
        for (int i = 0; right && i < HEIGHT; ++i) f(i, SPAN - 1);
    }
    __device__ int pixel(int i, int j) const { return (row + i) * cols + column + j; }
};

// Labels of each tile, and the pixels' codes. An open region keeps its label; `opened` says how many have numbers, which in
// the image are MOST_OPEN times the tile's more.
template <bool INCLUSIVE, bool ALIGNED, bool EIGHT>
__global__ void __launch_bounds__(TILE_THREADS, 3)
    region_tiles(const float* x, int* labels, unsigned short* codes, int* parent, int* firsts, int* sizes, int* opened,
                 float threshold, int majority, int least, int rows, int cols) {
    __shared__ TileNodes nodes;
    __shared__ int open;
    const RegionTile tile(rows, cols);
    const Patch patch;
    const int top = patch.warp * HEIGHT, left = patch.lane * SPAN;  // in the tile
    const Columns<ALIGNED> columns(cols, tile.column + left);
    unsigned int label[HEIGHT] = {};  // one more than it is; none outside the image
    const unsigned int inside = static_cast<unsigned int>((1ull << 8 * min(max(cols - columns.first, 0), SPAN)) - 1);
    vote_rows(x, columns, Cuts<INCLUSIVE>(threshold), short_of(majority), tile.row + top, rows,
              [&](int i, const int(&own)[SPAN]) {
                  label[i] = ((own[0] | own[1] << 8 | own[2] << 16 | own[3] << 24) + EVERY) & inside;
              });
    if (threadIdx.x == 0) open = 0;
    const PatchRoots roots = tile_components<EIGHT>(label, patch, nodes);
    count_pixels(roots, nodes);
    tile.at_borders(patch, [&](int i, int j) {
        if (label[i] >> 8 * j & 0xff) atomicOr(nodes.parent + roots.of(i, j), OPEN);
    });
    __syncthreads();
    unsigned int heads = 0;  // the pixels that are roots
#pragma unroll
    for (int i = 0; i < HEIGHT * SPAN; ++i)
        heads |= roots.of(i / SPAN, i % SPAN) == patch.node(i / SPAN, i % SPAN) ? 1u << i : 0u;
    for (; heads; heads &= heads - 1) {
        const int bit = __ffs(static_cast<int>(heads)) - 1, i = bit / SPAN, j = bit % SPAN;
        const int node = patch.node(i, j), word = nodes.parent[node], size = (word & ~OPEN) >> ROOT_BITS;
        nodes.parent[node] = (size >= least ? KEPT : 0) | (top + i) << 8 | (left + j);
        if (!(word & OPEN)) continue;
        const int own = atomicAdd(&open, 1), number = blockIdx.x * MOST_OPEN + own;
        parent[number] = number, firsts[number] = tile.pixel(top + i, left + j), sizes[number] = size;
        nodes.parent[node] = ~own;
    }
    __syncthreads();
    if (threadIdx.x == 0) opened[blockIdx.x] = open;
#pragma unroll
    for (int i = 0; i < HEIGHT; ++i) {
        int kept[SPAN], code[SPAN];
#pragma unroll
        for (int j = 0; j < SPAN; ++j) {
            const int word = nodes.parent[roots.of(i, j)], own = static_cast<int>(label[i] >> 8 * j & 0xff) - 1;
            code[j] = word < 0 ? OPEN_CODE | own << REGION_BITS | ~word : (word >> 8 & 0xff) * TILE_COLUMNS + (word & 0xff);
            kept[j] = word & KEPT ? own : 0;
        }
        if (tile.row + top + i >= rows) continue;
        const long long at = static_cast<long long>(tile.row + top + i) * cols;
        columns.write(labels + at, kept), columns.write(codes + at, code);
    }
}

// regions[p]: one more than the index of the first pixel of p's region; of open ones with fewer than `least` pixels go the
// labels. A block takes a tile, and finds what each of its open regions became once.
template <bool ALIGNED>
__global__ void __launch_bounds__(TILE_THREADS)
    region_ends(const unsigned short* codes, int* labels, int* regions, const int* opened, const int* parent,
                const int* firsts, const int* sizes, int least, int rows, int cols) {
    constexpr int LOST = 1 << 31;
    __shared__ int ends[MOST_OPEN];
    const RegionTile tile(rows, cols);
    const Patch patch;
    const int top = patch.warp * HEIGHT, left = patch.lane * SPAN;  // in the tile
    const Columns<ALIGNED> columns(cols, tile.column + left);
    const auto at = [&](int i) { return static_cast<long long>(tile.row + top + i) * cols; };
    ushort4 code[HEIGHT];
#pragma unroll
    for (int i = 0; i < HEIGHT; ++i) {
        const bool inside = tile.row + top + i < rows;
        const auto one = [&](int j) -> unsigned short {
            return inside && columns.first + j < cols ? codes[at(i) + columns.first + j] : 0;
        };
        if constexpr (ALIGNED) {
            code[i] = make_ushort4(0, 0, 0, 0);
            if (inside && columns.first < cols) code[i] = *reinterpret_cast<const ushort4*>(codes + at(i) + columns.first);
        } else {
            code[i] = make_ushort4(one(0), one(1), one(2), one(3));
        }
    }
    const int count = opened[blockIdx.x];
    for (int i = threadIdx.x; i < count; i += TILE_THREADS) {
        const int root = settled_root(parent, blockIdx.x * MOST_OPEN + i);
        ends[i] = (firsts[root] + 1) | (sizes[root] < least ? LOST : 0);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < HEIGHT; ++i) {
        if (tile.row + top + i >= rows) break;
        const int own[SPAN] = {code[i].x, code[i].y, code[i].z, code[i].w};
        int region[SPAN];
#pragma unroll
        for (int j = 0; j < SPAN; ++j) {
            region[j] = own[j] & OPEN_CODE ? ends[own[j] & ((1 << REGION_BITS) - 1)]
                                           : tile.row * cols + tile.column + own[j] / TILE_COLUMNS * cols + own[j] % TILE_COLUMNS + 1;
            if (region[j] < 0) labels[at(i) + columns.first + j] = 0;
            region[j] &= ~LOST;
        }
        columns.write(regions + at(i), region);
    }
}
