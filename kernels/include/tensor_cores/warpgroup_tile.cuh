#pragma once

#include <cuda_pipeline.h>

#include "products/gemm_tile.cuh"
#include "tensor_cores/ptx.cuh"
#include "tensor_cores/tensor_tile.cuh"

// Products of 16-bit operands by warpgroup instructions, FP32 sums, for compute capability 9.0 alone (on the CPU there
// is nothing to call). Blocks stay and take one tile of the output after the other; copies run ahead over borders.

template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, class F>
__device__ void multiply_on_warpgroups(const typename T::Element::Memory* a, const typename T::Element::Memory* b,
                                       const float* bias, float* c, int m, int n, int k, void* shared, F f);

#ifndef CPU_CUDA

/// Two warpgroups, each with 64 of a tile's 128 rows.
template <class E, int STAGES_>
struct Warpgroups {
    using Element = E;
    static constexpr int M = 128, N = 256, DEPTH = 64, STAGES = STAGES_, THREADS = 256, AHEAD = STAGES - 2;
    static constexpr int ROWS = 1, COLS = N / 16, RESIDENT = 1;
    static constexpr bool BY_WARPGROUPS = true, BY_MAPS = false;
    static constexpr int CLUSTER = 1;
    static constexpr unsigned int ROW = 128, LINES_64 = 64 * ROW, LEFT = M * ROW, STAGE = (M + N) * ROW;
    static_assert(STAGES >= 3, "a tile is written while two are read");
};

/// One operand, LINES rows of A or columns of B, in the order of operand_at; ALONG as there.
template <class T, int LINES, bool ALONG>
struct SwizzledOperand {
    static constexpr int PIECES = ALONG ? 8 : LINES / 8, APART = T::THREADS / PIECES;
    static constexpr int COUNT = (ALONG ? LINES : T::DEPTH) / APART, STEP = ALONG ? 32 : 16 * T::ROW;
    static_assert(APART % 8 == 0, "the pieces of a thread have one swizzle");
    const unsigned short* from;
    long long length;  // of a row in memory
    int lines, depth;  // left in the matrix from the tile's first on

    __device__ static int row() { return threadIdx.x / PIECES; }
    __device__ static int piece() { return threadIdx.x % PIECES; }

    __device__ void start(const unsigned short* matrix, int line, int all_lines, int all_depth) {
        length = ALONG ? all_depth : all_lines;
        from = matrix + row() * length + piece() * 8 + line * (ALONG ? length : 1);
        lines = all_lines - line;
        depth = all_depth;
    }

    /// The next tile; what lies outside the matrix is zero.
    __device__ void copy(unsigned int shared) {
        const int col = piece() * 8;
        const unsigned int to = shared + piece() / 8 * T::LINES_64 + row() * T::ROW + (piece() % 8 ^ row() % 8) * 16;
        const unsigned short* source = from;
#pragma unroll
        for (int i = 0; i < COUNT; ++i, source += APART * length) {
            const int at = row() + i * APART;
            const bool inside = ALONG ? at < lines && col < depth : at < depth && col < lines;
            copy_or_zero(to + i * APART * T::ROW, source, inside);
        }
        from += ALONG ? T::DEPTH : T::DEPTH * length;
        depth -= T::DEPTH;
    }
};

/// All depth tiles of all of a block's output tiles, one after the other.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG>
struct TileStream {
    const unsigned short *a, *b;
    int m, n, k, rows, cols, next, left;
    SwizzledOperand<T, T::M, LEFT_ALONG> rows_of_a;
    SwizzledOperand<T, T::N, RIGHT_ALONG> columns_of_b;

    __device__ TileStream(const unsigned short* a_, const unsigned short* b_, int m_, int n_, int k_)
        : a(a_), b(b_), m(m_), n(n_), k(k_), next(blockIdx.x), left(0) {
        rows = (m + T::M - 1) / T::M, cols = (n + T::N - 1) / T::N;
    }

    __device__ BlockTile tile(int index) const { return BlockTile(rows, cols, 16, index); }

    /// Starts the copies of the next depth tile, if there is one.
    __device__ void copy(unsigned int shared) {
        if (left == 0 && next < rows * cols) {
            rows_of_a.start(a, tile(next).row * T::M, m, k);
            columns_of_b.start(b, tile(next).col * T::N, n, k);
            left = depth_tiles<T>(k);
            next += gridDim.x;
        }
        if (left > 0) {
            rows_of_a.copy(shared);
            columns_of_b.copy(shared + T::LEFT);
            --left;
        }
        __pipeline_commit();
    }
};

/// Multiplies one depth tile, as one batch.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG>
__device__ void multiply_depth_tile(unsigned int shared, float (&sum)[1][2 * T::COLS][4]) {
    const unsigned long long a = operand_at(shared + threadIdx.x / 128 * T::LINES_64, T::LINES_64);
    const unsigned long long b = operand_at(shared + T::LEFT, T::LINES_64);
    constexpr unsigned int STEP_A = LEFT_ALONG ? 32 : 16 * T::ROW, STEP_B = RIGHT_ALONG ? 32 : 16 * T::ROW;
    open_batch();
#pragma unroll
    for (unsigned int step = 0; step < T::DEPTH / 16; ++step)
        multiply_warpgroup<T::Element::KIND, LEFT_ALONG, RIGHT_ALONG>(sum[0], moved(a, step * STEP_A),
                                                                      moved(b, step * STEP_B));
    close_batch();
}

/// c = f(a b + bias) by the blocks of a 1-D grid, no more than there are tiles. `shared` has room for all stages and
/// 1 KiB, to whose multiples they are aligned. A stage is written again two batches after the one that read it, when
/// that is over: the matrix pipe always has the next batch waiting.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, class F>
__device__ void multiply_on_warpgroups(const typename T::Element::Memory* a, const typename T::Element::Memory* b,
                                       const float* bias, float* c, int m, int n, int k, void* shared, F f) {
    const unsigned int stages = (shared_address(shared) + 1023) / 1024 * 1024;
    TileStream<T, LEFT_ALONG, RIGHT_ALONG> stream(reinterpret_cast<const unsigned short*>(a),
                                                  reinterpret_cast<const unsigned short*>(b), m, n, k);
    const int tiles = stream.rows * stream.cols;
    for (int stage = 0; stage < T::AHEAD; ++stage) stream.copy(stages + stage * T::STAGE);
    unsigned int read = stages, write = stages + T::AHEAD * T::STAGE;
    const unsigned int end = stages + T::STAGES * T::STAGE;
#pragma unroll 1
    for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
        float sum[1][2 * T::COLS][4] = {};
#pragma unroll 1
        for (int left = depth_tiles<T>(k); left > 0; --left) {
            __pipeline_wait_prior(T::AHEAD - 1);
            show_to_warpgroups();
            __syncthreads();
            multiply_depth_tile<T, LEFT_ALONG, RIGHT_ALONG>(read, sum);
            stream.copy(write);
            wait_for_earlier_batches();
            read = read + T::STAGE == end ? stages : read + T::STAGE;
            write = write + T::STAGE == end ? stages : write + T::STAGE;
        }
        wait_for_batches<0>(sum[0]);
        const BlockTile tile = stream.tile(index);
        store_sums<T>(sum, bias, c, m, n, tile.row * T::M + threadIdx.x / 32 * 16, tile.col * T::N, f);
    }
}

#endif
