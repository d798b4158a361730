#pragma once

#include "images/tile_components.cuh"
#include "images/union_find.cuh"

// Open regions of tiles, those that reach beyond their tile's border: joined with each other, and added up.

constexpr int MOST_OPEN = 2 * (TILE_ROWS + TILE_COLUMNS);  // regions of a tile, of which each has a pixel at its border
// A pixel's code: the number in the tile of its region's first pixel, or that of an open region below its label.
constexpr int OPEN_CODE = 1 << 15, REGION_BITS = 9;
static_assert(MOST_OPEN <= 1 << REGION_BITS && TILE_ROWS * TILE_COLUMNS <= OPEN_CODE);

/// The image by the tiles' codes; at borders of tiles all are open, and above their numbers are labels.
struct TiledRegions {
    const unsigned short* codes;
    int* parent;
    int rows, cols;

    __device__ int code(int row, int column) const {
        return row >= 0 && column >= 0 && column < cols ? codes[static_cast<long long>(row) * cols + column] : 0;
    }
    __device__ int number(int row, int column, int code) const {
        const int tile = row / TILE_ROWS * ((cols + TILE_COLUMNS - 1) / TILE_COLUMNS) + column / TILE_COLUMNS;
        return tile * MOST_OPEN + (code & ((1 << REGION_BITS) - 1));
    }
};

__device__ inline bool same_label(int code, int other) { return code >> REGION_BITS == other >> REGION_BITS; }

// Joins open regions: threads below `across` take a pixel under a border of tiles each, the others one to the right of a
// border.
template <bool EIGHT>
__global__ void __launch_bounds__(256)
    region_join(const unsigned short* codes, int* parent, int rows, int cols, long long across, long long along) {
    const TiledRegions image = {codes, parent, rows, cols};
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, rest = i - across;
    if (rest >= along) return;
    const bool under = i < across;
    const int row = static_cast<int>(under ? (i / cols + 1) * TILE_ROWS : rest % rows);
    const int column = static_cast<int>(under ? i % cols : (rest / rows + 1) * TILE_COLUMNS);
    const int own = image.code(row, column), left = image.code(row, column - 1), up = image.code(row - 1, column);
    const int up_left = image.code(row - 1, column - 1);
    const int right = EIGHT && under ? image.code(row, column + 1) : 0;
    const int up_right = EIGHT && under ? image.code(row - 1, column + 1) : 0;
    const auto joined = [&](int code, int r, int c, int other, int other_r, int other_c) {
        join(parent, image.number(r, c, code), image.number(other_r, other_c, other));
    };
    if (under) {
        if (same_label(own, up)) {
            if (!same_label(own, left) || !same_label(own, up_left)) joined(own, row, column, up, row - 1, column);
        } else if (EIGHT) {
            if (same_label(own, up_left) && !same_label(own, left)) joined(own, row, column, up_left, row - 1, column - 1);
            if (same_label(own, up_right) && !same_label(own, right)) joined(own, row, column, up_right, row - 1, column + 1);
        }
        return;
    }
    if (same_label(own, left)) joined(own, row, column, left, row, column - 1);
    if (!EIGHT || row == 0 || same_label(own, left)) return;
    if (same_label(own, up_left) && !same_label(own, up)) joined(own, row, column, up_left, row - 1, column - 1);
    if (same_label(left, up) && !same_label(left, up_left)) joined(left, row, column - 1, up, row - 1, column);
}

// Adds what is known of open regions to the one that they belong to. A block takes one tile's.
extern "C" __global__ void __launch_bounds__(128)
    region_sums(const int* opened, const int* parent, int* firsts, int* sizes) {
    const int count = opened[blockIdx.x];
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const int number = blockIdx.x * MOST_OPEN + i, root = settled_root(parent, number);
        if (root == number) continue;
        atomicAdd(sizes + root, sizes[number]);
        atomicMin(firsts + root, firsts[number]);
    }
}
