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
    static constexpr bool BY_WARPGROUPS = true, BY_MAPS = false;
    static constexpr int CLUSTER = 1;
    static_assert(E::KIND == 2 && STAGES >= 3, "a tile is read while another one is written and a third on its way");
};

/// A tile of A in pieces of 16 bits, two for each float, in which SwizzledOperand counts.
template <class T>
struct InHalves {
    static constexpr int DEPTH = 2 * T::DEPTH, THREADS = T::THREADS;
    static constexpr unsigned int ROW = 128, LINES_64 = 64 * ROW;
};

/// All depth tiles of all of a block's output tiles, one after the other. A stage has A's tile, then B's, whose lines
/// are 8 floats longer than it: no bank is met twice where fragments are read.
template <class T>
struct TurnedStream {
    using RowsOfA = SwizzledOperand<InHalves<T>, T::M, true>;
    using ColumnsOfB = Operand<T, T::N, false, T::Element::VECTOR>;
    static constexpr unsigned int LEFT = T::M * InHalves<T>::ROW, STAGE = LEFT + sizeof(float) * ColumnsOfB::SIZE;
    static_assert(STAGE % 1024 == 0);
    const float *a, *b;
    int m, n, k, rows, cols, next, left;
    RowsOfA rows_of_a;
    ColumnsOfB columns_of_b;

    __device__ TurnedStream(const float* a_, const float* b_, int m_, int n_, int k_)
        : a(a_), b(b_), m(m_), n(n_), k(k_), next(blockIdx.x), left(0) {
        rows = (m + T::M - 1) / T::M, cols = (n + T::N - 1) / T::N;
    }

    __device__ BlockTile tile(int index) const { return BlockTile(rows, cols, 8, index); }

    /// Starts the copies of the next depth tile, if there is one.
    __device__ void copy(unsigned char* stage) {
        if (left == 0 && next < rows * cols) {
            rows_of_a.start(reinterpret_cast<const unsigned short*>(a), tile(next).row * T::M, m, 2 * k);
            columns_of_b.start(b, tile(next).col * T::N, n, k);
            left = depth_tiles<T>(k);
            next += gridDim.x;
        }
        if (left > 0) {
            rows_of_a.copy(shared_address(stage));
            columns_of_b.copy(reinterpret_cast<float*>(stage + LEFT));
            --left;
        }
        __pipeline_commit();
    }
};

/// The first of this lane's two columns: of a warp's 16 it has two neighbours, which are lines g and g + 8 of
/// multiply_lanes, g = lane / 4.
__device__ inline int turned_column() { return threadIdx.x / 32 * 16 + warp_lane() / 4 * 2; }

/// This lane's part of B's depth tile.
template <class T>
__device__ void read_turned(float (&part)[T::STEPS][4], const unsigned char* stage) {
    using Columns = typename TurnedStream<T>::ColumnsOfB;
    const float* const tile = reinterpret_cast<const float*>(stage + TurnedStream<T>::LEFT);
    const float* const own = tile + warp_lane() % 4 * Columns::PITCH + turned_column();
#pragma unroll
    for (int i = 0; i < 2 * T::STEPS; ++i) {
        const float2 two = *reinterpret_cast<const float2*>(own + 4 * i * Columns::PITCH);
        part[i / 2][i % 2 * 2] = two.x, part[i / 2][i % 2 * 2 + 1] = two.y;
    }
}

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
/// 1 KiB, to whose multiples they are aligned. While a batch runs, the next tile of B is read into registers, and a
/// tile is copied to the stage that the batch before has read. Parts are rounded between batches: what a running one
/// has as its input no other instruction may write.
template <class T, class F>
__device__ void multiply_turned(const float* a, const float* b, const float* bias, float* c, int m, int n, int k,
                                void* shared, F f) {
    using Stream = TurnedStream<T>;
    unsigned char* const stages = static_cast<unsigned char*>(shared) + (1024 - shared_address(shared) % 1024) % 1024;
    Stream stream(a, b, m, n, k);
    for (int stage = 0; stage < T::STAGES - 1; ++stage) stream.copy(stages + stage * Stream::STAGE);
    __pipeline_wait_prior(T::STAGES - 2);
    show_to_warpgroups();
    __syncthreads();
    unsigned int read = 0, write = (T::STAGES - 1) * Stream::STAGE;  // where stages begin
    unsigned int part[T::STEPS][4];
    float following[T::STEPS][4];
    read_turned<T>(following, stages);
#pragma unroll 1
    for (int index = blockIdx.x; index < stream.rows * stream.cols; index += gridDim.x) {
        float sum[T::M / 8][4] = {};
#pragma unroll 1
        for (int left = depth_tiles<T>(k); left > 0; --left) {
            const unsigned long long lines = operand_at(shared_address(stages) + read, 0);
            round_part(part, following);
            open_batch();
#pragma unroll
            for (int step = 0; step < T::STEPS; ++step)
                multiply_turned_step(sum, part[step], moved(lines, step * T::Element::STEP * sizeof(float)));
            close_batch();
            __pipeline_wait_prior(T::STAGES - 3);
            show_to_warpgroups();
            __syncthreads();
            stream.copy(stages + write);
            read = read == (T::STAGES - 1) * Stream::STAGE ? 0 : read + Stream::STAGE;
            write = write == (T::STAGES - 1) * Stream::STAGE ? 0 : write + Stream::STAGE;
            read_turned<T>(following, stages + read);
            wait_for_batches<0>(sum);
        }
        const BlockTile tile = stream.tile(index);
        store_turned<T>(sum, bias, c, m, n, tile.row * T::M, tile.col * T::N + turned_column(), f);
    }
}

#endif
