#pragma once

#include "warpgroup_tile.cuh"

// Products of TF32 operands by warpgroup instructions, for compute capability 9.0 alone (on the CPU there is nothing to
// call). Those take TF32 from shared memory only with the depth contiguous, which B [k, n] has not. So a tile is
// computed turned over, c' = b' a': B' comes from registers, in whatever order it lies, and A [m, k] from shared memory
// as it is.

template <class T, class F>
__device__ void multiply_turned(const float* a, const float* b, const float* bias, float* c, int m, int n, int k,
                                void* shared, F f);

#ifndef CPU_CUDA

/// Two warpgroups, each with 64 of a tile's 128 columns and all of its 256 rows.
template <class E, int STAGES_>
struct Turned {
    using Element = E;
    static constexpr int M = 256, N = 128, DEPTH = 32, STAGES = STAGES_, THREADS = 256, STEPS = DEPTH / E::STEP;
    static constexpr int RESIDENT = 1;
    static constexpr bool BY_WARPGROUPS = true;
    static_assert(E::KIND == 2 && STAGES >= 3, "a tile is read while another one is written and a third on its way");
};

/// A tile of A in pieces of 16 bits, two for each float, in which SwizzledOperand counts.
template <class T>
struct InHalves {
    static constexpr int DEPTH = 2 * T::DEPTH, THREADS = T::THREADS;
    static constexpr unsigned int ROW = 128, LINES_64 = 64 * ROW;
};

/// What a block goes through: its output tiles one after the other, each from its first depth tile to the last.
template <class T>
struct TurnedTiles {
    static constexpr unsigned int STAGE = T::M * InHalves<T>::ROW;
    const float *a, *b;
    int m, n, k, rows, cols;

    __device__ TurnedTiles(const float* a_, const float* b_, int m_, int n_, int k_)
        : a(a_), b(b_), m(m_), n(n_), k(k_) {
        rows = (m + T::M - 1) / T::M, cols = (n + T::N - 1) / T::N;
    }

    __device__ int count() const { return rows * cols; }
    __device__ BlockTile at(int index) const { return BlockTile(rows, cols, 8, index); }
};

/// A's depth tiles on their way to shared memory.
template <class T>
struct TurnedRows {
    SwizzledOperand<InHalves<T>, T::M, true> source;
    int next = blockIdx.x, left = 0;

    /// Starts the copy of the next one, if there is one.
    __device__ void copy(const TurnedTiles<T>& tiles, unsigned int stage) {
        if (left == 0 && next < tiles.count()) {
            const unsigned short* const halves = reinterpret_cast<const unsigned short*>(tiles.a);
            source.start(halves, tiles.at(next).row * T::M, tiles.m, 2 * tiles.k);
            left = depth_tiles<T>(tiles.k);
            next += gridDim.x;
        }
        if (left > 0) {
            source.copy(stage);
            --left;
        }
        __pipeline_commit();
    }
};

/// B's, straight to registers: no two warps want the same. Of a warp's 16 columns a lane has two neighbours, which are
/// lines g and g + 8 of multiply_lanes, g = lane / 4.
template <class T>
struct TurnedColumns {
    const float* from;
    int depth;  // left in the matrix; 0 for columns behind its last

    __device__ static int first(const BlockTile& tile) {
        return tile.col * T::N + threadIdx.x / 32 * 16 + warp_lane() / 4 * 2;
    }

    __device__ void start(const TurnedTiles<T>& tiles, int index) {
        const int col = first(tiles.at(index));
        from = tiles.b + static_cast<long long>(warp_lane() % 4) * tiles.n + col;
        depth = col < tiles.n ? tiles.k - warp_lane() % 4 : 0;
    }

    __device__ void read(float (&part)[T::STEPS][4], int n) {
#pragma unroll
        for (int i = 0; i < 2 * T::STEPS; ++i, from += 4ll * n) {
            const float2 two = 4 * i < depth ? __ldg(reinterpret_cast<const float2*>(from)) : make_float2(0.0f, 0.0f);
            part[i / 2][i % 2 * 2] = two.x, part[i / 2][i % 2 * 2 + 1] = two.y;
        }
        depth -= T::DEPTH;
    }

    /// Has the L2 fetch what is read next, a line of the warp's a lane.
    __device__ void bring_next(int n) const {
        const int line = warp_lane(), own = line % 4;
        if (line < depth + own) bring_to_l2(from + static_cast<long long>(line - own) * n - line / 4 * 2);
    }
};

/// Rounded to TF32.
template <int STEPS>
__device__ void round_part(unsigned int (&to)[STEPS][4], const float (&part)[STEPS][4]) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step)
#pragma unroll
        for (int i = 0; i < 4; ++i) to[step][i] = to_tf32(part[step][i]);
}

/// c = f(sum + bias of its column), the sums of 16 columns a warp and 256 rows.
template <class T, class F>
__device__ void store_turned(const float (&sum)[T::M / 8][4], const float* bias, float* c, int m, int n, int row,
                             int col, F f) {
    if (col >= n) return;
    const float2 none = make_float2(0.0f, 0.0f);
    const float2 added = bias != nullptr ? make_float2(__ldg(bias + col), __ldg(bias + col + 1)) : none;
    row += warp_lane() % 4 * 2;
    float* to = c + static_cast<long long>(row) * n + col;
    const auto store = [&](float* at, float x, float y) {
        *reinterpret_cast<float2*>(at) = make_float2(f(x + added.x), f(y + added.y));
    };
#pragma unroll
    for (int j = 0; j < T::M / 8; ++j, row += 8, to += 8ll * n) {
        if (row < m) store(to, sum[j][0], sum[j][2]);
        if (row + 1 < m) store(to + n, sum[j][1], sum[j][3]);
    }
}

/// c = f(a b + bias) by the blocks of a 1-D grid, no more than there are tiles. `shared` has room for all stages and
/// 1 KiB, to whose multiples they are aligned. While a batch runs, the next tile of B is read into registers, and one
/// of A is copied to the stage that the batch before has read. Parts are rounded between batches: what a running one has
/// as its input no other instruction may write.
template <class T, class F>
__device__ void multiply_turned(const float* a, const float* b, const float* bias, float* c, int m, int n, int k,
                                void* shared, F f) {
    using Tiles = TurnedTiles<T>;
    const unsigned int stages = (shared_address(shared) + 1023) / 1024 * 1024, end = stages + T::STAGES * Tiles::STAGE;
    const Tiles tiles(a, b, m, n, k);
    TurnedRows<T> rows;
    for (unsigned int stage = stages; stage < end - Tiles::STAGE; stage += Tiles::STAGE) rows.copy(tiles, stage);
    TurnedColumns<T> columns;
    unsigned int part[T::STEPS][4], read = stages, write = end - Tiles::STAGE;
    float following[T::STEPS][4];
    columns.start(tiles, blockIdx.x);
    columns.read(following, n);
    __pipeline_wait_prior(T::STAGES - 2);
    show_to_warpgroups();
    __syncthreads();
#pragma unroll 1
    for (int index = blockIdx.x; index < tiles.count(); index += gridDim.x) {
        float sum[T::M / 8][4] = {};
#pragma unroll 1
        for (int left = depth_tiles<T>(k); left > 0; --left) {
            const unsigned long long lines = operand_at(read, 0);
            round_part(part, following);
            open_batch();
#pragma unroll
            for (int step = 0; step < T::STEPS; ++step)
                multiply_turned_step(sum, part[step], moved(lines, step * T::Element::STEP * sizeof(float)));
            close_batch();
            __pipeline_wait_prior(T::STAGES - 3);
            show_to_warpgroups();
            __syncthreads();
            if (left == 1 && index + gridDim.x < tiles.count()) columns.start(tiles, index + gridDim.x);
            columns.read(following, n);
            columns.bring_next(n);
            rows.copy(tiles, write);
            read = read + Tiles::STAGE == end ? stages : read + Tiles::STAGE;
            write = write + Tiles::STAGE == end ? stages : write + Tiles::STAGE;
            wait_for_batches<0>(sum);
        }
        const BlockTile tile = tiles.at(index);
        store_turned<T>(sum, bias, c, m, n, tile.row * T::M, TurnedColumns<T>::first(tile), f);
    }
}

#endif
