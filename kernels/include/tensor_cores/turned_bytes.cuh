#pragma once

#include "products/gemm_tile.cuh"
#include "tensor_cores/ptx.cuh"
#include "tensor_cores/tensor_map.cuh"
#include "tensor_cores/tensor_tile.cuh"

// Products of e4m3 operands A [m, k] and B [k, n] by warpgroup instructions, for compute capability 9.0 alone (on the
// CPU there is nothing to call). Those take e4m3 from shared memory only with the depth contiguous, which B has not.
// So, as in turned_tile.cuh, a tile is computed turned over: B comes through registers, read in pairs of columns whose
// bytes are then put together by depth, and A from shared memory as it is. All three are copied by tensor maps.

template <class T, class F>
__device__ void multiply_turned_bytes(const TensorMap& a, const TensorMap& b, const float* bias, const TensorMap& c,
                                      int m, int n, int k, void* shared, F f);

#ifndef CPU_CUDA

/// One warpgroup copies; two have 64 of a tile's 128 columns each and all of its 256 rows.
template <class E, int STAGES_>
struct TurnedBytes {
    using Element = E;
    static constexpr int M = 256, N = 128, DEPTH = 128, STAGES = STAGES_, THREADS = 384, STEPS = DEPTH / E::STEP;
    static constexpr int RESIDENT = 1, CLUSTER = 1, TALL = 8;
    static constexpr bool BY_WARPGROUPS = true, BY_MAPS = true;
    static constexpr unsigned int ROW = 128, BOX = 64 * ROW, LEFT = M * ROW, STAGE = LEFT + DEPTH * ROW;
    static_assert(E::KIND == 3);
};

#define MULTIPLY_BYTES(sum, a, b, keep) \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %133, 0; wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 {" \
                 NUMBERS_TO_127 "}, {%128, %129, %130, %131}, %132, p, 1, 1;}" \
                 : SUMS_32(0), SUMS_32(8), SUMS_32(16), SUMS_32(24) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(keep)))

/// The stages, the barriers that say which are full and which empty, and the place among them.
template <class T>
struct BytesRing {
    unsigned int stages, buffers, full, empty;
    int slot = 0;
    unsigned int parity = 0;

    __device__ explicit BytesRing(void* shared) {
        stages = (shared_address(shared) + 1023) / 1024 * 1024;
        buffers = stages + T::STAGES * T::STAGE;
        full = buffers + 4 * T::BOX;
        empty = full + 8 * T::STAGES;
    }

    __device__ void start() const {
        for (int i = 0; i < T::STAGES; ++i) start_barrier(full + 8 * i, 1), start_barrier(empty + 8 * i, 8);
        show_barriers();
    }

    __device__ unsigned int stage() const { return stages + slot * T::STAGE; }
    __device__ void advance() {
        if (++slot == T::STAGES) slot = 0, parity ^= 1;
    }

    __device__ void copy(const TensorMap& a, const TensorMap& b, int row, int col, int depth) {
        const unsigned int barrier = full + 8 * slot;
        await_phase(empty + 8 * slot, parity ^ 1);
        arrive_and_expect(barrier, T::STAGE);
#pragma unroll
        for (int i = 0; i < T::M / 64; ++i) load_box(stage() + i * T::BOX, a, depth, row + 64 * i, barrier);
#pragma unroll
        for (int i = 0; i < T::DEPTH / 64; ++i)
            load_box(stage() + T::LEFT + i * T::BOX, b, col, depth + 64 * i, barrier);
        advance();
    }
};

/// This lane's bytes of B in all steps of a stage, of its warp's columns from `col` on: two columns, pair after pair of
/// depths. Rows 2 t and 2 t + 1 of a matrix of ldmatrix are depths 4 t and 4 t + 1, of the next one the two after.
template <class T>
__device__ inline void read_pairs(unsigned int (&pair)[T::STEPS][4], unsigned int tile, int col) {
    const int row = warp_lane() % 8, matrix = warp_lane() / 8;
    const int depth = row / 2 * 4 + row % 2 + matrix % 2 * 2 + matrix / 2 * 16;
    const unsigned int from = tile + depth * T::ROW + (col / 16 ^ depth % 8) * 16;
#pragma unroll
    for (int step = 0; step < T::STEPS; ++step)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(pair[step][0]), "=r"(pair[step][1]), "=r"(pair[step][2]), "=r"(pair[step][3])
                     : "r"(from + step * 32 * T::ROW) : "memory");
}

/// Four depths of a column a register, as multiply_lanes has them: its lines g and g + 8 are columns 2 g and 2 g + 1.
template <int STEPS>
__device__ inline void join_depths(unsigned int (&part)[STEPS][4], const unsigned int (&pair)[STEPS][4]) {
#pragma unroll
    for (int i = 0; i < 4 * STEPS; ++i) {
        const unsigned int(&two)[4] = pair[i / 4];
        const int first = i / 2 % 2 * 2;
        part[i / 4][i % 4] = __byte_perm(two[first], two[first + 1], i % 2 ? 0x7531 : 0x6420);
    }
}

/// The product of a tile, of this warp's 16 columns. While a batch runs, the next stage's bytes are read.
template <class T>
__device__ inline void multiply_stages_of_bytes(float (&sum)[T::M / 8][4], BytesRing<T>& ring, int depths, int col) {
    unsigned int part[T::STEPS][4], pair[T::STEPS][4];
    const auto read = [&] {
        await_phase(ring.full + 8 * ring.slot, ring.parity);
        read_pairs<T>(pair, ring.stage() + T::LEFT, col);
    };
    read();
#pragma unroll 1
    for (int depth = 0; depth < depths; ++depth) {
        join_depths(part, pair);
        const unsigned long long lines = operand_at(ring.stage(), 16);
        open_batch();
#pragma unroll
        for (int step = 0; step < T::STEPS; ++step)
            MULTIPLY_BYTES(sum, part[step], moved(lines, 32 * step), depth > 0 || step > 0);
        close_batch();
        const unsigned int read_last = ring.empty + 8 * ring.slot;
        ring.advance();
        if (depth + 1 < depths) read();
        wait_for_batches<0>(sum);
        if (warp_lane() == 0) arrive_at(read_last);
    }
}

#undef MULTIPLY_BYTES

/// f(sum + bias) of a tile's 64 columns of this warpgroup, 64 rows at a time, through two boxes of 32 columns in shared
/// memory. A lane has two neighbouring columns of rows 2 t and 2 t + 1 of every 8.
template <class T, class F>
__device__ inline void store_turned_boxes(const BytesRing<T>& ring, const float (&sum)[T::M / 8][4], const float* bias,
                                          const TensorMap& c, int n, int row, int col, F f) {
    const int group = threadIdx.x / 128, warp = threadIdx.x % 128 / 32, line = warp_lane() % 4 * 2;
    const int own = warp % 2 * 16 + warp_lane() / 4 * 2, at = col + warp / 2 * 32 + own;
    const bool first = threadIdx.x % 128 == 0;
    const unsigned int boxes = ring.buffers + group * 2 * T::BOX;
    const unsigned int to = boxes + warp / 2 * T::BOX + line * T::ROW + own % 4 * 4;
    const bool added = bias != nullptr && at < n;
    const float2 add = added ? *reinterpret_cast<const float2*>(bias + at) : make_float2(0.0f, 0.0f);
    const auto put = [&](unsigned int shared, float x, float y) {
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};"
                     : : "r"(shared), "f"(f(x + add.x)), "f"(f(y + add.y)) : "memory");
    };
#pragma unroll
    for (int part = 0; part < T::M / 64; ++part) {
        if (first) wait_for_stores<0>();
        synchronize_warpgroup(1 + group);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float(&four)[4] = sum[8 * part + i];
            put(to + i * 8 * T::ROW + (own / 4 ^ line) * 16, four[0], four[2]);
            put(to + (i * 8 + 1) * T::ROW + (own / 4 ^ (line + 1)) * 16, four[1], four[3]);
        }
        show_to_warpgroups();
        synchronize_warpgroup(1 + group);
        if (first) {
            store_box(c, col, row + 64 * part, boxes);
            store_box(c, col + 32, row + 64 * part, boxes + T::BOX);
            close_stores();
        }
    }
}

/// c = f(a b + bias) by the blocks of a 1-D grid, no more than there are tiles; a null bias is none. `shared` has room
/// for all stages, four boxes, two barriers a stage, and 1 KiB, to whose multiples they are aligned.
template <class T, class F>
__device__ void multiply_turned_bytes(const TensorMap& a, const TensorMap& b, const float* bias, const TensorMap& c,
                                      int m, int n, int k, void* shared, F f) {
    BytesRing<T> ring(shared);
    if (threadIdx.x == 0) ring.start();
    __syncthreads();
    const int rows = (m + T::M - 1) / T::M, cols = (n + T::N - 1) / T::N, depths = depth_tiles<T>(k);
    const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0);  // the same for the compiler, too
    if (group == 2) {
        shrink_registers<24>();
        if (threadIdx.x == 256)
            for (int index = blockIdx.x; index < rows * cols; index += gridDim.x) {
                const BlockTile tile(rows, cols, T::TALL, index);
#pragma unroll 1
                for (int depth = 0; depth < depths; ++depth)
                    ring.copy(a, b, tile.row * T::M, tile.col * T::N, depth * T::DEPTH);
            }
    } else {
        grow_registers<240>();
#pragma unroll 1
        for (int index = blockIdx.x; index < rows * cols; index += gridDim.x) {
            const BlockTile tile(rows, cols, T::TALL, index);
            float sum[T::M / 8][4];
            multiply_stages_of_bytes<T>(sum, ring, depths, threadIdx.x / 32 * 16);
            store_turned_boxes<T>(ring, sum, bias, c, n, tile.row * T::M, tile.col * T::N + 64 * group, f);
        }
        if (threadIdx.x % 128 == 0) wait_for_stores<0>();
    }
}

#endif
