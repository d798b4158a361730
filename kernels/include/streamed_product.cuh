#pragma once

#include "gemm_tile.cuh"
#include "ptx.cuh"
#include "tensor_map.cuh"
#include "tensor_tile.cuh"
#include "warpgroup_step.cuh"

// Products of operands of 16 and 8 bits by warpgroup instructions, FP32 sums, for compute capability 9.0 alone. One warpgroup
// copies by tensor maps into a ring of stages, two multiply what it brings and store it; blocks stay and take one tile
// of the output after the other.

template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, class F>
__device__ void multiply_streamed(const TensorMap& a, const TensorMap& b, const float* bias, const TensorMap& c, int m,
                                  int n, int k, void* shared, F f);

#ifndef CPU_CUDA

/// Tiles of 64 BLOCKS rows and N columns, one after the other by two warpgroups in turns: one multiplies while the other
/// stores. The blocks of a cluster have tiles one below the other; one copy brings their columns of B to all of them.
template <class E, int BLOCKS_, int N_, int STAGES_, int CLUSTER_>
struct StreamedTile {
    using Element = E;
    static constexpr int BLOCKS = BLOCKS_, N = N_, STAGES = STAGES_, CLUSTER = CLUSTER_, THREADS = 384, RESIDENT = 1;
    static constexpr bool BY_WARPGROUPS = true, BY_MAPS = true;
    static constexpr int M = 64 * BLOCKS, DEPTH = 128 / sizeof(typename E::Word);
    static constexpr unsigned int ROW = 128, BOX = 64 * ROW, LEFT = M * ROW, STAGE = (M + N) * ROW;
    static constexpr unsigned int ALL = (1u << CLUSTER) - 1;
    static constexpr int READERS = 4 * CLUSTER;  // warps
    static constexpr int BUFFERS = 2;            // per warpgroup, of 64 rows of 32 sums
    static constexpr int TALL = 8;               // rows of the clusters' tiles that are walked side by side
};

template <class E, int STAGES>
using Streamed = StreamedTile<E, 2, 192, STAGES, 2>;
template <class E, int STAGES>
using StreamedSquare = StreamedTile<E, 2, 128, STAGES, 2>;

/// Where things lie in shared memory: stages from a multiple of 1 KiB on, buffers for sums, barriers.
template <class T>
struct Ring {
    unsigned int stages, buffers, full, empty;

    __device__ explicit Ring(void* shared) {
        stages = (shared_address(shared) + 1023) / 1024 * 1024;
        buffers = stages + T::STAGES * T::STAGE;
        full = buffers + 2 * T::BUFFERS * T::BOX;
        empty = full + 8 * T::STAGES;
    }

    /// One thread of each block. A stage is full when its bytes are there, empty when every warp of the cluster that
    /// reads it has read its own.
    __device__ void start() const {
        for (int stage = 0; stage < T::STAGES; ++stage) {
            start_barrier(full + 8 * stage, 1);
            start_barrier(empty + 8 * stage, T::READERS);
        }
        show_barriers();
    }
};

/// The stage of the ring that is the next, and the parity of its phase.
template <class T>
struct RingPlace {
    unsigned int stage = 0, parity = 0;

    __device__ void advance() {
        if (++stage == T::STAGES) stage = 0, parity ^= 1;
    }

    __device__ void go_to(unsigned int count) {
        stage = count % T::STAGES;
        parity = count / T::STAGES & 1;
    }
};

/// The tiles of a cluster, and this block's.
template <class T>
struct ClusterTiles {
    int rows, cols;

    __device__ ClusterTiles(int m, int n)
        : rows((m + T::M * T::CLUSTER - 1) / (T::M * T::CLUSTER)), cols((n + T::N - 1) / T::N) {}

    __device__ int count() const { return rows * cols; }

    /// Row and column of this block's tile, in elements.
    __device__ int2 at(int index) const {
        const BlockTile tile(rows, cols, T::TALL, index);
        const int rank = T::CLUSTER > 1 ? rank_in_cluster() : 0;
        return make_int2((tile.row * T::CLUSTER + rank) * T::M, tile.col * T::N);
    }
};

/// Copies an operand's boxes of one stage: LINES lines from `line` on, shared by the blocks of the cluster or its own.
template <class T, int BOXES, bool ALONG, bool OF_ALL>
__device__ inline void load_operand(unsigned int shared, const TensorMap& map, int line, int depth,
                                    unsigned int barrier) {
    constexpr bool SHARED = OF_ALL && T::CLUSTER > 1;
    constexpr int STEP = SHARED ? T::CLUSTER : 1;
    const int first = SHARED ? rank_in_cluster() : 0;
#pragma unroll
    for (int i = 0; i < BOXES; i += STEP) {
        const int box = first + i, at = line + 64 * box;
        const int x = ALONG ? depth : at, y = ALONG ? at : depth;
        if (BOXES % STEP != 0 && box >= BOXES) break;
        if constexpr (SHARED) load_box_to(T::ALL, shared + box * T::BOX, map, x, y, barrier);
        else load_box(shared + box * T::BOX, map, x, y, barrier);
    }
}

/// The copying thread: every depth tile of every tile of this block.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG>
__device__ void copy_tiles(const Ring<T>& ring, const TensorMap& a, const TensorMap& b, const ClusterTiles<T>& tiles,
                           int k) {
    RingPlace<T> place;
    const int depths = depth_tiles<T>(k);
    for (int index = blockIdx.x / T::CLUSTER; index < tiles.count(); index += gridDim.x / T::CLUSTER) {
        const int2 at = tiles.at(index);
#pragma unroll 1
        for (int depth = 0; depth < depths; ++depth, place.advance()) {
            const unsigned int full = ring.full + 8 * place.stage, stage = ring.stages + place.stage * T::STAGE;
            await_phase(ring.empty + 8 * place.stage, place.parity ^ 1);
            arrive_and_expect(full, T::STAGE);
            load_operand<T, T::M / 64, LEFT_ALONG, false>(stage, a, at.x, depth * T::DEPTH, full);
            load_operand<T, T::N / 64, RIGHT_ALONG, true>(stage + T::LEFT, b, at.y, depth * T::DEPTH, full);
        }
    }
}

/// This warp has read a stage.
template <class T>
__device__ inline void release(const Ring<T>& ring, unsigned int stage) {
    if constexpr (T::CLUSTER == 1) {
        if (warp_lane() == 0) arrive_at(ring.empty + 8 * stage, rank_in_cluster());
    } else if (warp_lane() < T::CLUSTER) arrive_at(ring.empty + 8 * stage, warp_lane());
}

/// Warpgroups that take turns begin a tile when the other one has seen all stages of the tile before: a phase of a
/// barrier may be awaited only after the one before it.
__device__ inline void await_turn(int group) { asm volatile("bar.sync %0, 256;" : : "r"(3 + group) : "memory"); }
__device__ inline void pass_turn(int group) { asm volatile("bar.arrive %0, 256;" : : "r"(4 - group) : "memory"); }

/// The sums of a tile by this warpgroup.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG>
__device__ inline void multiply_tile(const Ring<T>& ring, RingPlace<T>& place, int depths,
                                     float (&sum)[T::BLOCKS][T::N / 8][4]) {
    constexpr unsigned int STEP_A = LEFT_ALONG ? 32 : 16 * T::ROW, STEP_B = RIGHT_ALONG ? 32 : 16 * T::ROW;
    unsigned int before = 0;
#pragma unroll 1
    for (int depth = 0; depth < depths; ++depth, place.advance()) {
        await_phase(ring.full + 8 * place.stage, place.parity);
        __syncwarp();
        const unsigned int stage = ring.stages + place.stage * T::STAGE;
        const unsigned long long a = operand_at(stage, T::BOX);
        const unsigned long long b = operand_at(stage + T::LEFT, T::BOX);
        open_batch();
#pragma unroll
        for (unsigned int step = 0; step < 4; ++step)
#pragma unroll
            for (int i = 0; i < T::BLOCKS; ++i)
                multiply_step<T::Element::KIND, LEFT_ALONG, RIGHT_ALONG>(
                    sum[i], moved(a, step * STEP_A + i * T::BOX), moved(b, step * STEP_B), depth > 0 || step > 0);
        close_batch();
        wait_for_earlier_batches();
        if (depth > 0) release(ring, before);
        before = place.stage;
    }
    pass_turn(warpgroup() - 1);
    wait_for_batches<0>(sum[0]);
#pragma unroll
    for (int i = 1; i < T::BLOCKS; ++i) settle(sum[i]);
    release(ring, before);
}

/// Writes 32 columns of 64 rows to a buffer, as a box of 128-byte rows with swizzled pieces. Odd rows take blocks of 8
/// columns in another order, so that a half-warp meets every bank once.
template <class F>
__device__ inline void put_sums(unsigned int buffer, const float (&sum)[4][4], const float2 (&bias)[4], F f) {
    const int lane = warp_lane(), row = threadIdx.x % 128 / 32 * 16 + lane / 4;
    const bool odd = row & 1;
    const unsigned int to = buffer + row * 128 + lane % 2 * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int one = i, other = i ^ 2, block = odd ? other : one;
        const unsigned int piece = (2 * block + lane % 4 / 2) ^ row % 8;
        const float add_x = odd ? bias[other].x : bias[one].x, add_y = odd ? bias[other].y : bias[one].y;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float x = odd ? sum[other][2 * half] : sum[one][2 * half];
            const float y = odd ? sum[other][2 * half + 1] : sum[one][2 * half + 1];
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};"
                         : : "r"(to + piece * 16 + half * 1024), "f"(f(x + add_x)), "f"(f(y + add_y)) : "memory");
        }
    }
}

/// f(sum + bias) of a tile, through shared memory; the copies to memory go on after that.
template <class T, class F>
__device__ inline void store_boxes(const Ring<T>& ring, const TensorMap& c, const float* bias, int n, int row, int col,
                                   const float (&sum)[T::BLOCKS][T::N / 8][4], F f) {
    const int group = warpgroup();
    const bool first = threadIdx.x % 128 == 0;
    const unsigned int buffers = ring.buffers + (group - 1) * T::BUFFERS * T::BOX;
#pragma unroll
    for (int i = 0; i < T::BLOCKS; ++i)
#pragma unroll
        for (int part = 0; part < T::N / 32; ++part) {
            float2 add[4] = {};
            if (bias != nullptr)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int at = col + 32 * part + 8 * j + warp_lane() % 4 * 2;
                    if (at < n) add[j] = __ldg(reinterpret_cast<const float2*>(bias + at));
                }
            const unsigned int buffer = buffers + part % T::BUFFERS * T::BOX;
            if (first) wait_for_stores<T::BUFFERS - 1>();
            __syncwarp();
            synchronize_warpgroup(group);
            put_sums(buffer, reinterpret_cast<const float(&)[4][4]>(sum[i][4 * part]), add, f);
            show_to_warpgroups();
            synchronize_warpgroup(group);
            if (first) {
                store_box(c, col + 32 * part, row + 64 * i, buffer);
                close_stores();
            }
            __syncwarp();
        }
}

/// The multiplying warpgroups: sums of every other one of this block's tiles, and their stores.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, class F>
__device__ void multiply_tiles(const Ring<T>& ring, const TensorMap& c, const float* bias,
                               const ClusterTiles<T>& tiles, int n, int k, F f) {
    const int group = warpgroup() - 1, depths = depth_tiles<T>(k), clusters = gridDim.x / T::CLUSTER;
    RingPlace<T> place;
    if (group == 1) pass_turn(group);
#pragma unroll 1
    for (int turn = group, index; index = blockIdx.x / T::CLUSTER + turn * clusters, index < tiles.count(); turn += 2) {
        const int2 at = tiles.at(index);
        float sum[T::BLOCKS][T::N / 8][4];
        place.go_to(turn * depths);
        await_turn(group);
        multiply_tile<T, LEFT_ALONG, RIGHT_ALONG>(ring, place, depths, sum);
        store_boxes<T>(ring, c, bias, n, at.x, at.y, sum, f);
    }
    if (threadIdx.x % 128 == 0) wait_for_stores<0>();
}

/// c = f(a b + bias) by the blocks of a 1-D grid, whole clusters; a null bias is none. `shared` has room for all stages,
/// buffers and barriers and 1 KiB, to whose multiples they are aligned.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, class F>
__device__ void multiply_streamed(const TensorMap& a, const TensorMap& b, const float* bias, const TensorMap& c, int m,
                                  int n, int k, void* shared, F f) {
    const Ring<T> ring(shared);
    const ClusterTiles<T> tiles(m, n);
    if (threadIdx.x == 0) ring.start();
    synchronize_cluster();
    if (warpgroup() == 0) {
        shrink_registers<24>();
        if (threadIdx.x == 0) copy_tiles<T, LEFT_ALONG, RIGHT_ALONG>(ring, a, b, tiles, k);
    } else {
        grow_registers<240>();
        multiply_tiles<T, LEFT_ALONG, RIGHT_ALONG>(ring, c, bias, tiles, n, k, f);
    }
    __syncwarp();
    synchronize_cluster();  // no block goes while another one copies to it
}

#endif
