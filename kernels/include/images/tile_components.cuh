#pragma once

#include "sums/reduce.cuh"
#include "images/union_find.cuh"

// Components of equal labels in a block's tile of an image, in shared memory. A thread hangs its pixels on an earlier
// neighbour, 8 rows of 4 at a time in registers; only where two earlier neighbours may not yet belong together are sets
// joined by atomics (a pixel in twelve of four labels of noise), and then each pixel walks to its root.

constexpr int TILE_ROWS = 64, TILE_COLUMNS = 128, TILE_THREADS = 256;
constexpr int PATCH_ROWS = 8, PATCH_COLUMNS = 4;  // of a thread; those of a warp lie side by side

/// Pixels of a tile as nodes, in their order. Every 33rd node is no pixel, so that what lanes have in equal columns of
/// their patches lies in banks of its own.
constexpr int NODE_ROW = TILE_COLUMNS + TILE_COLUMNS / 32, NODES = TILE_ROWS * NODE_ROW;

__device__ inline int pixel_of_node(int node) { return node - node / 33; }

struct TileNodes {
    int parent[NODES];
    unsigned int last_row[TILE_THREADS / 32][32];  // labels of the last row of each warp's patches
};

/// A thread's patch. Labels of a row are the bytes of a word; 0 is no label and hangs together with nothing.
struct Patch {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = warp * PATCH_ROWS * NODE_ROW + lane * PATCH_COLUMNS + lane / 8;  // node

    __device__ int node(int row, int column) const {
        const int gap = column < 0 ? -(lane % 8 == 0) : column >= PATCH_COLUMNS ? lane % 8 == 7 : 0;
        return first + row * NODE_ROW + column + gap;
    }
    /// The labels to the left and to the right of a row's; beyond the tile there is none. All lanes of the warp call it.
    __device__ unsigned int left(unsigned int row) const {
        const unsigned int before = __shfl_up_sync(FULL_WARP, row, 1);
        return row << 8 | (lane == 0 ? 0 : before >> 24);
    }
    __device__ unsigned int right(unsigned int row) const {
        const unsigned int after = __shfl_down_sync(FULL_WARP, row, 1);
        return row >> 8 | (lane == 31 ? 0 : after << 24);
    }
};

constexpr unsigned int BYTE_TOPS = 0x80808080u;

/// The top bits of the bytes, below 128, that are alike in both and not 0.
__device__ inline unsigned int alike(unsigned int own, unsigned int other) {
    return (own + ~BYTE_TOPS) & ~((own ^ other) + ~BYTE_TOPS) & BYTE_TOPS;
}

/// Hangs each pixel on an earlier neighbour of its label, or on what that hangs on. The result has bit 8 c + k where the
/// pixel in row k and column c has to be joined with another one too. All threads of the block call it.
template <bool EIGHT>
__device__ unsigned int hang(const unsigned int (&label)[PATCH_ROWS], const Patch& patch, TileNodes& nodes) {
    nodes.last_row[patch.warp][patch.lane] = label[PATCH_ROWS - 1];
    __syncthreads();
    unsigned int above = patch.warp > 0 ? nodes.last_row[patch.warp - 1][patch.lane] : 0, more = 0;
    unsigned int above_left = patch.left(above), above_right = EIGHT ? patch.right(above) : 0;
    int over[PATCH_COLUMNS];  // what the pixels of the row above hang on
#pragma unroll
    for (int c = 0; c < PATCH_COLUMNS; ++c) over[c] = patch.node(-1, c);
#pragma unroll
    for (int k = 0; k < PATCH_ROWS; ++k) {
        const unsigned int own = label[k], beside = patch.left(own);
        const unsigned int up = alike(own, above), left = alike(own, beside), up_left = alike(own, above_left);
        const unsigned int up_right = EIGHT ? alike(own, above_right) : 0;
        more |= (EIGHT ? ~up & up_right & (left | up_left) : up & left & ~up_left) >> (7 - k);
        int on[PATCH_COLUMNS];
#pragma unroll
        for (int c = 0; c < PATCH_COLUMNS; ++c) {
            const unsigned int bit = 0x80u << 8 * c;
            on[c] = patch.node(k, c);
            if (EIGHT && up_right & bit) on[c] = c < PATCH_COLUMNS - 1 ? over[c + 1] : patch.node(k - 1, c + 1);
            if (EIGHT && up_left & bit) on[c] = c > 0 ? over[c - 1] : patch.node(k - 1, c - 1);
            if (left & bit) on[c] = c > 0 ? on[c - 1] : patch.node(k, c - 1);
            if (up & bit) on[c] = over[c];
            nodes.parent[patch.node(k, c)] = on[c];
        }
#pragma unroll
        for (int c = 0; c < PATCH_COLUMNS; ++c) over[c] = on[c];
        above = own, above_left = beside, above_right = EIGHT ? patch.right(own) : 0;
    }
    __syncthreads();
    return more;
}

/// The roots of a thread's pixels, two in a word.
struct PatchRoots {
    unsigned int pair[PATCH_ROWS][PATCH_COLUMNS / 2];

    __device__ int of(int row, int column) const { return pair[row][column / 2] >> 16 * (column % 2) & 0xffff; }
};

/// The components of the tile; a root is the node of its component's first pixel, and parents stay as they are from here
/// on. All threads of the block call it.
template <bool EIGHT>
__device__ PatchRoots tile_components(const unsigned int (&label)[PATCH_ROWS], const Patch& patch, TileNodes& nodes) {
    for (unsigned int more = hang<EIGHT>(label, patch, nodes); more; more &= more - 1) {
        const int bit = __ffs(static_cast<int>(more)) - 1, row = bit % 8, column = bit / 8;
        join(nodes.parent, patch.node(row, column), EIGHT ? patch.node(row - 1, column + 1) : patch.node(row, column - 1));
    }
    __syncthreads();
    PatchRoots roots;
#pragma unroll
    for (int k = 0; k < PATCH_ROWS; ++k) {
        int at[PATCH_COLUMNS];
#pragma unroll
        for (int c = 0; c < PATCH_COLUMNS; ++c) at[c] = nodes.parent[patch.node(k, c)];
        for (bool moved = true; moved;) {  // all four at once
            moved = false;
#pragma unroll
            for (int c = 0; c < PATCH_COLUMNS; ++c) {
                const int next = nodes.parent[at[c]];
                moved |= next != at[c];
                at[c] = next;
            }
        }
#pragma unroll
        for (int c = 0; c < PATCH_COLUMNS; c += 2) roots.pair[k][c / 2] = at[c] | at[c + 1] << 16;
    }
    __syncthreads();
    return roots;
}

// From then on a root's word holds its own number below ROOT_BITS, and above what is counted for its component.
constexpr int ROOT_BITS = 14;

/// Counts the pixels of components in their roots' words; what is all of one component counts at once.
__device__ inline void count_pixels(const PatchRoots& roots, TileNodes& nodes) {
    const int first = roots.of(0, 0);
    unsigned int other = 0;
#pragma unroll
    for (int i = 0; i < PATCH_ROWS * PATCH_COLUMNS / 2; ++i) other |= roots.pair[i / 2][i % 2] ^ roots.pair[0][0];
    if (other == 0 && first == roots.of(0, 1)) {
        atomicAdd(nodes.parent + first, PATCH_ROWS * PATCH_COLUMNS << ROOT_BITS);
        return;
    }
#pragma unroll
    for (int i = 0; i < PATCH_ROWS * PATCH_COLUMNS; i += 2) {
        const int one = roots.of(i / 4, i % 4), next = roots.of(i / 4, i % 4 + 1);
        atomicAdd(nodes.parent + one, (one == next ? 2 : 1) << ROOT_BITS);
        if (one != next) atomicAdd(nodes.parent + next, 1 << ROOT_BITS);
    }
}
