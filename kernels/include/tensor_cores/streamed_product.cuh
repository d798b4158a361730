#pragma once

#include "products/gemm_tile.cuh"
#include "tensor_cores/ptx.cuh"
#include "tensor_cores/tensor_map.cuh"
#include "tensor_cores/tensor_tile.cuh"
#include "tensor_cores/warpgroup_step.cuh"

// Products of operands of 16 and 8 bits by warpgroup instructions, FP32 sums, for compute capability 9.0 alone. One
// warpgroup copies by tensor maps into a ring of stages, two multiply what it brings and store it; blocks stay and take
// one tile of the output after the other.

template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, class F>
__device__ void multiply_streamed(const TensorMap& a, const TensorMap& b, const float* bias, const TensorMap& c, int m,
                                  int n, int k, void* shared, F f);

#ifndef CPU_CUDA

/// Tiles of M rows and 128 columns, computed turned over, c' = b' a': a lane has sums of two columns alone, so it needs
/// little of the bias, and two warps can store without the other two. Two warpgroups take one tile after the other in
/// turns, one multiplies while the other stores; or TOGETHER each has 64 columns of the same tile. The blocks of a
/// cluster have tiles side by side; one copy brings their rows of A to all of them.
template <class E, int M_, int STAGES_, bool TOGETHER_ = false>
struct StreamedTile {
    using Element = E;
    static constexpr int M = M_, N = 128, STAGES = STAGES_, CLUSTER = 2, THREADS = 384, RESIDENT = 1;
    static constexpr bool BY_WARPGROUPS = true, BY_MAPS = true, TOGETHER = TOGETHER_;
    static constexpr int DEPTH = 128 / sizeof(typename E::Word), BLOCKS = TOGETHER ? 1 : 2;  // of 64 columns
    static constexpr unsigned int ROW = 128, BOX = 64 * ROW, COLUMNS = N * ROW, STAGE = COLUMNS + M * ROW;
    static constexpr int READERS = (TOGETHER ? 8 : 4) * CLUSTER;  // warps
    static constexpr int STORED_ROWS = 32, BOXES = 2;  // rows of a stored box of 32 columns, and boxes of two warps
    static constexpr int WIDE = 8;                     // clusters whose tiles are walked side by side
};

template <class E, int STAGES>
using Streamed = StreamedTile<E, 192, STAGES>;
template <class E, int STAGES>
using StreamedSquare = StreamedTile<E, 128, STAGES>;
template <class E, int STAGES>
using StreamedTall = StreamedTile<E, 256, STAGES, true>;

/// Where things lie in shared memory: stages from a multiple of 1 KiB on, buffers for sums, barriers.
template <class T>
struct Ring {
    unsigned int stages, buffers, full, empty;

    __device__ explicit Ring(void* shared) {
        stages = (shared_address(shared) + 1023) / 1024 * 1024;
        buffers = stages + T::STAGES * T::STAGE;
        full = buffers + 4 * T::BOXES * T::STORED_ROWS * T::ROW;
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
        : rows((m + T::M - 1) / T::M), cols((n + T::N * T::CLUSTER - 1) / (T::N * T::CLUSTER)) {}

    __device__ int count() const { return rows * cols; }

    /// Row and column of this block's tile, in elements.
    __device__ int2 at(int index) const {
        const BlockTile tile(cols, rows, T::WIDE, index);
        return make_int2(tile.col * T::M, (tile.row * T::CLUSTER + rank_in_cluster()) * T::N);
    }
};

/// Copies an operand's boxes of one stage, of 64 lines each from `line` on, shared by the blocks of the cluster or its own.
template <class T, int BOXES, bool ALONG, bool SHARED>
__device__ inline void load_operand(unsigned int shared, const TensorMap& map, int line, int depth,
                                    unsigned int barrier) {
    constexpr int STEP = SHARED ? T::CLUSTER : 1;
    const int first = SHARED ? rank_in_cluster() : 0;
#pragma unroll
    for (int i = 0; i < BOXES; i += STEP) {
        const int box = first + i, at = line + 64 * box;
        const int x = ALONG ? depth : at, y = ALONG ? at : depth;
        if (BOXES % STEP != 0 && box >= BOXES) break;
        if constexpr (SHARED) load_box_to((1u << T::CLUSTER) - 1, shared + box * T::BOX, map, x, y, barrier);
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
            load_operand<T, T::N / 64, RIGHT_ALONG, false>(stage, b, at.y, depth * T::DEPTH, full);
            load_operand<T, T::M / 64, LEFT_ALONG, true>(stage + T::COLUMNS, a, at.x, depth * T::DEPTH, full);
        }
    }
}

/// This warp has read a stage.
template <class T>
__device__ inline void release(const Ring<T>& ring, unsigned int stage) {
    if (warp_lane() < T::CLUSTER) arrive_at(ring.empty + 8 * stage, warp_lane());
}

/// Warpgroups that take turns begin a tile when the other one has seen all stages of the tile before: a phase of a
/// barrier may be awaited only after the one before it.
__device__ inline void await_turn(int group) { asm volatile("bar.sync %0, 256;" : : "r"(3 + group) : "memory"); }
__device__ inline void pass_turn(int group) { asm volatile("bar.arrive %0, 256;" : : "r"(4 - group) : "memory"); }

/// The sums of T::BLOCKS times 64 columns of a tile, from `columns` bytes on in a stage, by this warpgroup.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG>
__device__ inline void multiply_tile(const Ring<T>& ring, RingPlace<T>& place, int depths, unsigned int columns,
                                     float (&sum)[T::BLOCKS][T::M / 8][4]) {
    constexpr unsigned int STEP_A = LEFT_ALONG ? 32 : 16 * T::ROW, STEP_B = RIGHT_ALONG ? 32 : 16 * T::ROW;
    unsigned int before = 0;
#pragma unroll 1
    for (int depth = 0; depth < depths; ++depth, place.advance()) {
        await_phase(ring.full + 8 * place.stage, place.parity);
        __syncwarp();
        const unsigned int stage = ring.stages + place.stage * T::STAGE;
        const unsigned long long a = operand_at(stage + T::COLUMNS, T::BOX), b = operand_at(stage + columns, T::BOX);
        open_batch();
#pragma unroll
        for (unsigned int step = 0; step < 4; ++step)
#pragma unroll
            for (int i = 0; i < T::BLOCKS; ++i)
                multiply_step<T::Element::KIND, RIGHT_ALONG, LEFT_ALONG>(
                    sum[i], moved(b, step * STEP_B + i * T::BOX), moved(a, step * STEP_A), depth > 0 || step > 0);
        close_batch();
        wait_for_earlier_batches();
        if (depth > 0) release(ring, before);
        before = place.stage;
    }
    if (!T::TOGETHER) pass_turn(warpgroup() - 1);
    wait_for_batches<0>(sum[0]);
#pragma unroll
    for (int i = 1; i < T::BLOCKS; ++i) settle(sum[i]);
    release(ring, before);
}

/// Until the two warps are here that store the same boxes.
__device__ inline void synchronize_pair(int pair) { asm volatile("bar.sync %0, 64;" : : "r"(5 + pair) : "memory"); }

/// f(sum + bias) of 64 columns, through boxes of shared memory, whose copies to memory go on after that. A box has rows
/// of 128 bytes in swizzled pieces; a lane has columns g and g + 8 of its warp's 16, g = lane / 4, and of every 8 rows
/// 2 t and 2 t + 1, t = lane % 4: the lanes meet every bank once.
template <class T, class F>
__device__ inline void store_boxes(const Ring<T>& ring, const TensorMap& c, const float* bias, int n, int row, int col,
                                   const float (&sum)[T::M / 8][4], F f) {
    constexpr unsigned int SIZE = T::STORED_ROWS * T::ROW;
    const int warp = threadIdx.x % 128 / 32, pair = 2 * (warpgroup() - 1) + warp / 2, g = warp_lane() / 4;
    const bool first = threadIdx.x % 64 == 0;
    const int at = col + warp * 16 + g;
    const float add = bias != nullptr && at < n ? __ldg(bias + at) : 0.0f;
    const float add_8 = bias != nullptr && at + 8 < n ? __ldg(bias + at + 8) : 0.0f;
    const unsigned int boxes = ring.buffers + pair * T::BOXES * SIZE;
    const unsigned int line = warp_lane() % 4 * 2, piece = warp % 2 * 4 + g / 4;
    const unsigned int even = line * T::ROW + (piece ^ line) * 16 + g % 4 * 4;
    const unsigned int odd = (line + 1) * T::ROW + (piece ^ (line + 1)) * 16 + g % 4 * 4;
#pragma unroll
    for (int part = 0; part < T::M / T::STORED_ROWS; ++part) {
        const unsigned int box = boxes + part % T::BOXES * SIZE;
        if (first) wait_for_stores<T::BOXES - 1>();
        __syncwarp();
        synchronize_pair(pair);
#pragma unroll
        for (int j = 0; j < T::STORED_ROWS / 8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float value = sum[part * (T::STORED_ROWS / 8) + j][i] + (i < 2 ? add : add_8);
                asm volatile("st.shared.f32 [%0], %1;"
                             : : "r"(box + ((i % 2 ? odd : even) ^ (i / 2 * 32)) + j * 1024), "f"(f(value)) : "memory");
            }
        show_to_warpgroups();
        synchronize_pair(pair);
        if (first) {
            store_box(c, col + warp / 2 * 32, row + part * T::STORED_ROWS, box);
            close_stores();
        }
        __syncwarp();
    }
}

/// The multiplying warpgroups: this block's tiles, or every other one, and their stores.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, class F>
__device__ void multiply_tiles(const Ring<T>& ring, const TensorMap& c, const float* bias,
                               const ClusterTiles<T>& tiles, int n, int k, F f) {
    const int group = warpgroup() - 1, depths = depth_tiles<T>(k), clusters = gridDim.x / T::CLUSTER;
    const int own = T::TOGETHER ? group : 0, step = T::TOGETHER ? 1 : 2;  // first 64 columns, tiles
    RingPlace<T> place;
    if (!T::TOGETHER && group == 1) pass_turn(group);
#pragma unroll 1
    for (int turn = group - own, index; index = blockIdx.x / T::CLUSTER + turn * clusters, index < tiles.count();
         turn += step) {
        const int2 at = tiles.at(index);
        float sum[T::BLOCKS][T::M / 8][4];
        place.go_to(turn * depths);
        if (!T::TOGETHER) await_turn(group);
        multiply_tile<T, LEFT_ALONG, RIGHT_ALONG>(ring, place, depths, own * T::BOX, sum);
#pragma unroll
        for (int i = 0; i < T::BLOCKS; ++i) store_boxes(ring, c, bias, n, at.x, at.y + 64 * (own + i), sum[i], f);
    }
    if (threadIdx.x % 64 == 0) wait_for_stores<0>();
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
