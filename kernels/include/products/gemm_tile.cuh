#pragma once

#include <cuda_pipeline.h>

#include "arrays/vector_load.cuh"

// Tiled FP32 products. Both operands lie in shared memory depth-major ([k][row] and [k][column]), STAGES tiles deep;
// copies are asynchronous, fragments are read one step ahead, so that the FMA pipe never waits at a tile's border.

/// A block's tile of M x N outputs. SLICES warps share each output, every one a part of the depth.
template <int M_, int N_, int DEPTH_, int STAGES_, int WARPS_M_, int WARPS_N_, int SLICES_, int RESIDENT_>
struct Tile {
    static constexpr int M = M_, N = N_, DEPTH = DEPTH_, STAGES = STAGES_, WARPS_M = WARPS_M_, WARPS_N = WARPS_N_;
    static constexpr int SLICES = SLICES_, RESIDENT = RESIDENT_, THREADS = 32 * WARPS_M * WARPS_N * SLICES;
    static constexpr int LANES_M = 4, LANES_N = 8;
    static constexpr int ROWS = M / WARPS_M / LANES_M, COLS = N / WARPS_N / LANES_N;
    static constexpr int STEPS = DEPTH / SLICES;
    // Rows 4 floats longer than the tile: the transposing copies then meet no bank twice.
    static constexpr int PITCH_M = M + 4, PITCH_N = N + 4, STAGE = DEPTH * (PITCH_M + PITCH_N);
    static constexpr int SHARED = STAGES * STAGE;
    // Whether no tile of the launch reaches outside the matrices, and how a warp's lanes are placed.
    static constexpr bool WHOLE = false, PAIRED = true;
    static constexpr int PARTS = 1;
    static_assert(ROWS % 4 == 0 && COLS % 4 == 0 && STEPS % 2 == 0 && STAGES >= 3 && STAGES <= 8);
    static_assert((SLICES - 1) * M * N <= SHARED);
};

using Large = Tile<128, 256, 8, 3, 2, 4, 1, 1>;
using Medium = Tile<128, 128, 8, 3, 4, 2, 1, 2>;
using Narrow = Tile<64, 64, 8, 4, 2, 2, 1, 4>;
using Small = Tile<16, 32, 32, 6, 1, 1, 8, 1>;

/// Whether the launch gives a tile its shared memory: a kernel can declare no more than 48 KiB.
template <class T>
constexpr bool GIVEN_MEMORY = T::SHARED * 4 > 48 * 1024;

template <class T>
__device__ constexpr int depth_tiles(int depth) {
    return (depth + T::DEPTH - 1) / T::DEPTH;
}

/// Where a thread's outputs lie in the block's tile: quads of four rows and four columns, strewn over the warp's part.
template <class T>
struct Place {
    int row, col, slice;

    __device__ Place() {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = warp % (T::WARPS_M * T::WARPS_N);
        slice = warp / (T::WARPS_M * T::WARPS_N);
        // Neighbouring lanes that share a row or a column quad take two passes for a warp's 16-byte read, not four.
        const int down = T::PAIRED ? lane % 2 + lane / 16 * 2 : lane / T::LANES_N;
        const int across = T::PAIRED ? lane / 2 % T::LANES_N : lane % T::LANES_N;
        row = part / T::WARPS_N * (T::M / T::WARPS_M) + down * 4;
        col = part % T::WARPS_N * (T::N / T::WARPS_N) + across * 4;
    }

    __device__ int row_at(int i) const { return row + i / 4 * 4 * T::LANES_M + i % 4; }
    __device__ int col_at(int j) const { return col + j / 4 * 4 * T::LANES_N + j % 4; }
};

/// The tile of a 1-D grid's block, or the tile `index`: `group` tile rows are walked side by side, so that a wave stays
/// in the L2 cache.
struct BlockTile {
    int row, col;

    __device__ BlockTile(int tile_rows, int tile_cols, int group, unsigned int index = blockIdx.x) {
        const int in_group = index % (group * tile_cols), first = index / (group * tile_cols) * group;
        const int rows = min(group, tile_rows - first);
        row = first + in_group % rows;
        col = in_group / rows;
    }
};

/// Copies LINES lines that run along the depth, turning them: shared[k][line]. Single floats, so any alignment will do.
template <class T, int LINES>
struct TurningCopy {
    static constexpr int APART = T::THREADS / T::DEPTH, COUNT = LINES / APART, PITCH = LINES + 4;
    static_assert(T::THREADS % T::DEPTH == 0 && LINES % APART == 0);
    const float* from;
    long long step;
    int lines;

    /// The first of the lines that this thread copies; the others follow APART lines apart.
    __device__ static int first() { return threadIdx.x / T::DEPTH; }

    /// This thread's first line begins at `line`, its next ones `apart` floats apart; from the tile's first line on the
    /// matrix has `count` lines.
    __device__ void start(const float* line, long long apart, int count) {
        from = line + threadIdx.x % T::DEPTH;
        step = apart;
        lines = count;
    }

    /// Whether no tile of `depth` has anything outside the matrix.
    __device__ bool whole(int depth) const { return lines >= LINES && depth % T::DEPTH == 0; }

    /// The next tile, of which one part; what lies `left` or more deep, or outside the matrix, is zero. A tile that is
    /// not WHOLE comes in one part.
    template <bool WHOLE>
    __device__ void copy(float* shared, int left, int part, int parts) {
        const int k = threadIdx.x % T::DEPTH;
        float* const to = shared + k * PITCH + first();
        if (WHOLE || (left >= T::DEPTH && lines >= LINES)) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i)
                if (i * parts / COUNT == part) __pipeline_memcpy_async(to + i * APART, from + i * step, 4);
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const bool inside = k < left && first() + i * APART < lines;
                if (inside) __pipeline_memcpy_async(to + i * APART, from + i * step, 4);
                else to[i * APART] = 0.0f;
            }
        }
        if (part == parts - 1) from += T::DEPTH;
    }
};

/// Copies COLS columns of a row-major matrix, WIDTH floats at a time: shared[k][column].
template <class T, int COLS, int WIDTH>
struct StraightCopy {
    static constexpr int ACROSS = COLS / WIDTH, APART = T::THREADS / ACROSS, COUNT = T::DEPTH / APART, PITCH = COLS + 4;
    static_assert(T::THREADS % ACROSS == 0 && T::DEPTH % APART == 0);
    const float* from;
    long long length;

    __device__ void start(const float* matrix, int columns, int first) {
        const int column = first + threadIdx.x % ACROSS * WIDTH;
        length = columns;
        from = matrix + threadIdx.x / ACROSS * length + (column < columns ? column : 0);
    }

    __device__ bool whole(int depth) const { return depth % T::DEPTH == 0; }

    template <bool WHOLE>
    __device__ void copy(float* shared, int left, int part, int parts) {
        const int k = threadIdx.x / ACROSS;
        float* const to = shared + k * PITCH + threadIdx.x % ACROSS * WIDTH;
        if (WHOLE || left >= T::DEPTH) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i)
                if (i * parts / COUNT == part)
                    __pipeline_memcpy_async(to + i * APART * PITCH, from + i * APART * length, 4 * WIDTH);
        } else {
#pragma unroll
            for (int i = 0; i < COUNT * WIDTH; ++i) {
                const int row = i / WIDTH * APART, at = i % WIDTH;
                if (k + row >= left) to[row * PITCH + at] = 0.0f;
                else if (at == 0) __pipeline_memcpy_async(to + row * PITCH, from + row * length, 4 * WIDTH);
            }
        }
        if (part == parts - 1) from += T::DEPTH * length;
    }
};

template <class T>
struct Fragments {
    float a[T::ROWS], b[T::COLS];

    /// From this thread's first floats of a depth of both operands.
    __device__ void read(const float* left, const float* right) {
#pragma unroll
        for (int i = 0; i < T::ROWS / 4; ++i) put4(a + 4 * i, load4(left + i * 4 * T::LANES_M));
#pragma unroll
        for (int j = 0; j < T::COLS / 4; ++j) put4(b + 4 * j, load4(right + j * 4 * T::LANES_N));
    }

    __device__ void read(const float* stage, int k, const Place<T>& place) {
        read(stage + k * T::PITCH_M + place.row, stage + T::DEPTH * T::PITCH_M + k * T::PITCH_N + place.col);
    }

    __device__ static void put4(float* to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }

    /// Columns to and fro, so that neighbouring FMAs share an operand.
    __device__ void multiply(float (&sum)[T::ROWS][T::COLS]) const {
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
            for (int n = 0; n < T::COLS; ++n) {
                const int j = i % 2 ? T::COLS - 1 - n : n;
                sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
            }
    }
};

template <class T, bool WHOLE, class Source>
__device__ void walk_tiles(Source& source, int tiles, float* shared, const Place<T>& place,
                           float (&sum)[T::ROWS][T::COLS]) {
    // Copies between the products of half the steps: they then wait for no queue, and no product for them.
    constexpr int PARTS = WHOLE ? T::STEPS / 2 : 1;
    for (int stage = 0; stage < T::STAGES - 1; ++stage) {
        if (source.tiles == 0) source.next();
        if (source.tiles > 0) source.template copy<WHOLE>(shared + stage * T::STAGE, 0, 1);
        __pipeline_commit();
    }
    __pipeline_wait_prior(T::STAGES - 2);
    __syncthreads();
    const int first = place.slice * T::STEPS;
    Fragments<T> fragments[2];
    fragments[0].read(shared, first, place);
    int read = 0, write = T::STAGES - 1;
    while (tiles > 0) {
        if (source.tiles == 0) source.next();
        const bool copying = source.tiles > 0;
        for (int left = copying ? source.tiles : tiles; left > 0; --left, --tiles) {
#pragma unroll
            for (int step = 0; step < T::STEPS; ++step) {
                if (step == T::STEPS - 1) {
                    __pipeline_wait_prior(T::STAGES - 2);
                    __syncthreads();
                    if (tiles > 1) read = read + 1 == T::STAGES ? 0 : read + 1;
                }
                fragments[(step + 1) % 2].read(shared + read * T::STAGE, first + (step + 1) % T::STEPS, place);
                if (step < PARTS && copying)
                    source.template copy<WHOLE>(shared + write * T::STAGE, step, PARTS);
                if (step == PARTS - 1) {
                    __pipeline_commit();
                    write = write + 1 == T::STAGES ? 0 : write + 1;
                }
                fragments[step % 2].multiply(sum);
            }
        }
    }
}

/// Adds the product of `tiles` depth tiles to `sum`. `source.copy(stage, part, parts)` starts the copies of one part of
/// the next tile; `source.tiles` counts those left until `source.next()` turns to other operands, if there are any.
/// Where nothing of any tile is outside the matrices, `source.whole()`, no copy looks for borders.
template <class T, class Source>
__device__ void multiply_tiles(Source& source, int tiles, float* shared, const Place<T>& place,
                               float (&sum)[T::ROWS][T::COLS]) {
    if (tiles == 0) return;
    if (T::WHOLE || source.whole()) walk_tiles<T, true>(source, tiles, shared, place, sum);
    else walk_tiles<T, false>(source, tiles, shared, place, sum);
}

/// Adds the slices' sums in order; slice 0 has the total. All threads of the block call it.
template <class T>
__device__ void combine_slices(float* shared, const Place<T>& place, float (&sum)[T::ROWS][T::COLS]) {
    if constexpr (T::SLICES > 1) {
        constexpr int OUTPUTS = T::ROWS * T::COLS, LANES = T::THREADS / T::SLICES;
        __syncthreads();
        float* const mine = shared + threadIdx.x % LANES;
#pragma unroll
        for (int i = 0; i < OUTPUTS; ++i)
            if (place.slice > 0) mine[((place.slice - 1) * OUTPUTS + i) * LANES] = sum[i / T::COLS][i % T::COLS];
        __syncthreads();
        if (place.slice > 0) return;
#pragma unroll
        for (int slice = 1; slice < T::SLICES; ++slice)
#pragma unroll
            for (int i = 0; i < OUTPUTS; ++i)
                sum[i / T::COLS][i % T::COLS] += mine[((slice - 1) * OUTPUTS + i) * LANES];
    }
}
