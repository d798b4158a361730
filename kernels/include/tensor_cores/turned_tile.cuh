#pragma once

#include "products/gemm_tile.cuh"
#include "tensor_cores/ptx.cuh"
#include "tensor_cores/tensor_map.cuh"
#include "tensor_cores/tensor_tile.cuh"

// Products of TF32 operands by warpgroup instructions, for compute capability 9.0 alone (on the CPU there is nothing to
// call). Those take TF32 from shared memory only with the depth contiguous, which B [k, n] has not. So a tile is
// computed turned over, c' = b' a': B' comes from registers, in whatever order it lies, and A [m, k] from shared memory
// as it is. Tensor maps bring both, already rounded to TF32. Two blocks side by side are a cluster: each copies half of
// their rows of A to both, for without that the L2 cache is the bottleneck.

template <class E, int STAGES>
struct Turned;

template <class T, class F>
__device__ void multiply_turned(const TensorMap& a, const TensorMap& b, const float* bias, float* c, int m, int n,
                                int k, void* shared, F f);

#ifndef CPU_CUDA

/// A warpgroup that copies and two that multiply, each with 64 of a tile's 128 columns and all of its 256 rows.
template <class E, int STAGES_>
struct Turned {
    using Element = E;
    static constexpr int M = 256, N = 128, DEPTH = 32, STAGES = STAGES_, THREADS = 384, STEPS = DEPTH / E::STEP;
    static constexpr int RESIDENT = 1, CLUSTER = 2, GROUP = 8;
    static constexpr bool BY_WARPGROUPS = true, BY_MAPS = true, STORES_BY_MAP = false;
    static constexpr int COPYING_REGISTERS = 40, MULTIPLYING_REGISTERS = 232;
    // Boxes of 128 bytes: of 64 rows of A, and of 32 columns and all of the depth of B.
    static constexpr unsigned int ROW = 128, LEFT_BOX = 64 * ROW, RIGHT_BOX = DEPTH * ROW;
    static constexpr unsigned int LEFT = M * ROW, STAGE = LEFT + N * ROW;
    static_assert(E::KIND == 2 && STAGES >= 3, "two stages are read while another one is filled");
};

/// The next stage, its barriers (one for when it is full, one for when it is empty) and the parity of their phase.
template <class T>
struct TurnedRing {
    unsigned int stages, slot = 0, parity = 0;

    __device__ unsigned int stage() const { return stages + slot * T::STAGE; }
    __device__ unsigned int full() const { return stages + T::STAGES * T::STAGE + 8 * slot; }
    __device__ unsigned int empty() const { return full() + 8 * T::STAGES; }
    __device__ void next() {
        if (++slot == T::STAGES) slot = 0, parity ^= 1;
    }
};

/// The tiles that a block takes: with the others of its cluster one pair of neighbours after the other.
template <class T>
struct TurnedWalk {
    int rows, pairs, index, rank;

    __device__ TurnedWalk(int m, int n)
        : rows((m + T::M - 1) / T::M), pairs((n + T::N * T::CLUSTER - 1) / (T::N * T::CLUSTER)),
          index(blockIdx.x / T::CLUSTER), rank(rank_in_cluster()) {}

    __device__ bool inside() const { return index < rows * pairs; }
    __device__ void next() { index += gridDim.x / T::CLUSTER; }

    /// First row and column.
    __device__ int2 at() const {
        const BlockTile tile(rows, pairs, T::GROUP, index);
        return make_int2(tile.row * T::M, (tile.col * T::CLUSTER + rank) * T::N);
    }
};

/// One thread copies all stages of all tiles.
template <class T>
__device__ void copy_turned(const TensorMap& a, const TensorMap& b, int m, int n, int k, TurnedRing<T> ring) {
    constexpr int OWN = T::M / 64 / T::CLUSTER;
    prefetch(a);
    prefetch(b);
    for (TurnedWalk<T> walk(m, n); walk.inside(); walk.next()) {
        const int2 at = walk.at();
#pragma unroll 1
        for (int depth = 0; depth < k; depth += T::DEPTH) {
            await_phase(ring.empty(), ring.parity ^ 1);
            arrive_and_expect(ring.full(), T::STAGE);
#pragma unroll
            for (int i = 0; i < OWN; ++i) {
                const int box = OWN * walk.rank + i;
                load_box_to((1u << T::CLUSTER) - 1, ring.stage() + box * T::LEFT_BOX, a, depth, at.x + 64 * box,
                            ring.full());
            }
#pragma unroll
            for (int i = 0; i < T::N / 32; ++i)
                load_box(ring.stage() + T::LEFT + i * T::RIGHT_BOX, b, at.y + 32 * i, depth, ring.full());
            ring.next();
        }
    }
}

/// Where a lane reads B's fragments in a stage. Of a box of 32 columns, two warps have 16 each, of these a lane two
/// neighbours, which are lines g and g + 8 of multiply_lanes, g = lane / 4. Which two is chosen such that a half-warp's
/// swizzled pieces, of four depths, meet no bank twice.
template <class T>
struct TurnedPlace {
    int column;
    unsigned int first, second;  // depths t and t + 4 of each step, t = lane % 4

    __device__ TurnedPlace() {
        const int warp = threadIdx.x / 32 - 4, g = warp_lane() / 4, t = warp_lane() % 4;
        const unsigned int piece = g / 2 % 2 * 4 + g / 4 + warp % 2 * 2;
        const unsigned int box = T::LEFT + warp / 2 * T::RIGHT_BOX + g % 2 * 8;
        column = warp / 2 * 32 + piece * 4 + g % 2 * 2;
        first = box + t * T::ROW + (piece ^ t) * 16;
        second = box + (t + 4) * T::ROW + (piece ^ (t + 4)) * 16;
    }

    __device__ void read(unsigned int (&part)[T::STEPS][4], unsigned int stage) const {
#pragma unroll
        for (int i = 0; i < 2 * T::STEPS; ++i)
            load_pair(part[i / 2][i % 2 * 2], part[i / 2][i % 2 * 2 + 1],
                      stage + (i % 2 ? second : first) + i / 2 * 8 * T::ROW);
    }
};

/// One batch: a stage.
template <class T>
__device__ void multiply_turned_stage(float (&sum)[T::M / 8][4], const unsigned int (&part)[T::STEPS][4],
                                      unsigned int stage) {
    const unsigned long long lines = operand_at(stage, 0);
    open_batch();
#pragma unroll
    for (int step = 0; step < T::STEPS; ++step) multiply_turned_step(sum, part[step], moved(lines, step * 32));
    close_batch();
}

/// This warp has read the stage; all blocks of the cluster may fill it again.
template <class T>
__device__ void release_turned(TurnedRing<T>& ring) {
    __syncwarp();
    if (warp_lane() < T::CLUSTER) arrive_at(ring.empty(), warp_lane());
    ring.next();
}

/// The sums of one tile. A batch is started before the one before it is over, so that the matrix pipe always has one
/// waiting; what a running batch has as its input no other instruction may write.
template <class T>
__device__ void add_turned(float (&sum)[T::M / 8][4], int stages, const TurnedPlace<T>& place, TurnedRing<T>& ring,
                           TurnedRing<T>& done) {
    unsigned int part[2][T::STEPS][4];
    const auto read = [&](unsigned int (&to)[T::STEPS][4]) {
        await_phase(ring.full(), ring.parity);
        place.read(to, ring.stage());
    };
    const auto multiply = [&](const unsigned int (&from)[T::STEPS][4]) {
        multiply_turned_stage<T>(sum, from, ring.stage());
        ring.next();
    };
    if (stages > 0) read(part[0]);
#pragma unroll 1
    for (int left = stages; left > 0; left -= 2) {
        multiply(part[0]);
        if (left < stages) {
            wait_for_earlier_batches();
            release_turned(done);
        }
        if (left == 1) break;
        read(part[1]);
        multiply(part[1]);
        wait_for_earlier_batches();
        release_turned(done);
        if (left > 2) read(part[0]);
    }
    wait_for_batches<0>(sum);
    if (stages > 0) release_turned(done);
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

/// c = f(a b + bias) by the blocks of a 1-D grid, whole clusters. `shared` has room for all stages, 16 bytes of
/// barriers for each, and 1 KiB, to whose multiples they are aligned.
template <class T, class F>
__device__ void multiply_turned(const TensorMap& a, const TensorMap& b, const float* bias, float* c, int m, int n,
                                int k, void* shared, F f) {
    TurnedRing<T> ring = {(shared_address(shared) + 1023) / 1024 * 1024};
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < T::STAGES; ++stage) {
            start_barrier(ring.full() + 8 * stage, 1);
            start_barrier(ring.empty() + 8 * stage, 8 * T::CLUSTER);  // each warp that multiplies
        }
        show_barriers();
    }
    synchronize_cluster();
    if (threadIdx.x < 128) {
        shrink_registers<T::COPYING_REGISTERS>();
        if (threadIdx.x == 0) copy_turned<T>(a, b, m, n, k, ring);
    } else {
        grow_registers<T::MULTIPLYING_REGISTERS>();
        const TurnedPlace<T> place;
        TurnedRing<T> done = ring;
        for (TurnedWalk<T> walk(m, n); walk.inside(); walk.next()) {
            float sum[T::M / 8][4] = {};
            add_turned<T>(sum, depth_tiles<T>(k), place, ring, done);
            const int2 at = walk.at();
            store_turned<T>(sum, bias, c, m, n, at.x, at.y + place.column, f);
        }
    }
    __syncwarp();
    synchronize_cluster();  // no block goes while another one copies to it
}

#endif
