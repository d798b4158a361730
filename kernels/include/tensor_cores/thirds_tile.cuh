#pragma once

#include "tensor_cores/tensor_map.cuh"
#include "tensor_cores/tensor_tile.cuh"
#include "tensor_cores/warpgroup_tile.cuh"

// Products of floats with FP32's own precision by warpgroup instructions, for compute capability 9.0 alone (on the CPU
// there is nothing to call). A float is the sum of three bfloat16, exactly: of the nine products of two such sums the
// six largest are taken, the other three are at most 2^-23 of it in all. That is as much work for the matrix pipe as
// three products of TF32, but bfloat16 may lie in either order, and no bit of an operand is lost.

/// Two floats as three pairs of bfloat16 that add up to them; only the largest may be rounded to infinity.
__device__ inline void split_thirds(float x, float y, unsigned int& large, unsigned int& middle, unsigned int& small) {
    large = bfloat_pair(x, y);
    x -= __uint_as_float(large << 16), y -= __uint_as_float(large & 0xffff0000u);
    middle = bfloat_pair(x, y);
    x -= __uint_as_float(middle << 16), y -= __uint_as_float(middle & 0xffff0000u);
    small = __byte_perm(__float_as_uint(x), __float_as_uint(y), 0x7632);  // the 6 bits that are left
}

template <class T, class F>
__device__ void multiply_in_thirds(const float* a, const float* b, const float* bias, float* c, int m, int n, int k,
                                   void* shared, F f);

#ifndef CPU_CUDA

/// A warpgroup that copies and two that multiply, each with 64 of a tile's 128 rows. A stage has A's tile as it is, in
/// rows of 128 bytes, then the thirds of B's: for each of them two columns of 64, a row of 128 bytes at each depth.
template <class E, int STAGES_>
struct Thirds {
    using Element = E;
    static constexpr int M = 128, N = 128, DEPTH = 32, STAGES = STAGES_, THREADS = 384, RESIDENT = 1, GROUP = 16;
    static constexpr int COPYING_REGISTERS = 104, MULTIPLYING_REGISTERS = 200;
    static constexpr bool BY_WARPGROUPS = true, BY_MAPS = false;
    static constexpr int CLUSTER = 1;
    static constexpr unsigned int ROW = 128, LEFT = M * ROW, COLUMN = DEPTH * ROW, THIRD = 2 * COLUMN;
    static constexpr unsigned int STAGE = LEFT + 3 * THIRD;
    static_assert(is_pair<E>() && STAGES >= 2);
};

/// Stages in shared memory, and for each a barrier for when it is full and one for when it is empty.
template <class T>
struct StageRing {
    unsigned int stages, slot = 0, parity = 0;

    __device__ explicit StageRing(unsigned int stages_) : stages(stages_) {}

    __device__ unsigned int stage() const { return stages + slot * T::STAGE; }
    __device__ unsigned int full() const { return stages + T::STAGES * T::STAGE + 8 * slot; }
    __device__ unsigned int empty() const { return full() + 8 * T::STAGES; }
    __device__ void next() {
        if (++slot == T::STAGES) slot = 0, parity ^= 1;
    }
};

/// The tiles of the output that a block takes.
template <class T>
struct TileWalk {
    int rows, cols, index;

    __device__ TileWalk(int m, int n) : rows((m + T::M - 1) / T::M), cols((n + T::N - 1) / T::N), index(blockIdx.x) {}

    __device__ bool inside() const { return index < rows * cols; }
    __device__ bool last() const { return index + static_cast<int>(gridDim.x) >= rows * cols; }
    __device__ void next() { index += gridDim.x; }
    __device__ BlockTile tile() const { return BlockTile(rows, cols, T::GROUP, index); }
};

/// Where a 16-byte piece of a row of A lies: a quarter of a warp reads four pieces of two rows and meets no bank twice.
__device__ inline unsigned int left_piece(int row, int piece) {
    return row * 128 + (piece ^ ((row & 1) << 2 | (row >> 1 & 3))) * 16;
}

/// The warpgroup that copies A and splits B, whose floats it has loaded one stage ahead.
template <class T>
struct ThirdsSource {
    const float *a, *b;
    int m, n, k;
    float4 held[T::DEPTH / 4];  // of every fourth depth, four columns a lane

    __device__ void load_right(int col, int depth) {
        const int at = col + threadIdx.x % 32 * 4;
#pragma unroll
        for (int i = 0; i < T::DEPTH / 4; ++i) {
            const int line = depth + threadIdx.x / 32 + 4 * i;
            const float* const from = b + static_cast<long long>(line) * n + at;
            held[i] = line < k && at < n ? load4(from) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }

    __device__ void copy_left(unsigned int stage, int row, int depth) const {
        const int own = threadIdx.x / 8, piece = threadIdx.x % 8, at = depth + piece * 4;
        const float* const from = a + static_cast<long long>(row + own) * k + at;
#pragma unroll
        for (int i = 0; i < T::M; i += 16)
            copy_or_zero(stage + left_piece(own + i, piece), from + static_cast<long long>(i) * k,
                         row + own + i < m && at < k);
    }

    /// Of 16 depths the instruction takes 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 from lane t of four; these have 4 t to
    /// 4 t + 3 of A as 16 bytes.
    __device__ static int depth_in_stage(int depth) {
        return depth / 16 * 16 + depth % 16 / 4 * 2 + depth % 2 + depth % 4 / 2 * 8;
    }

    __device__ void store_right(unsigned int stage) const {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < T::DEPTH / 4; ++i) {
            const int row = depth_in_stage(threadIdx.x / 32 + 4 * i);
            const unsigned int to = stage + T::LEFT + lane / 16 * T::COLUMN + row * T::ROW +
                                    (lane / 2 % 8 ^ row % 8) * 16 + lane % 2 * 8;
            unsigned int third[3][2];
            split_thirds(held[i].x, held[i].y, third[0][0], third[1][0], third[2][0]);
            split_thirds(held[i].z, held[i].w, third[0][1], third[1][1], third[2][1]);
#pragma unroll
            for (int p = 0; p < 3; ++p) store_pair(to + p * T::THIRD, third[p][0], third[p][1]);
        }
    }

    __device__ void fill(StageRing<T> ring) {
        TileWalk<T> walk(m, n);
        if (!walk.inside()) return;
        load_right(walk.tile().col * T::N, 0);
        while (walk.inside()) {
            const BlockTile tile = walk.tile();
            walk.next();
            const int following = walk.inside() ? walk.tile().col : tile.col;
#pragma unroll 1
            for (int depth = 0; depth < k; depth += T::DEPTH) {
                await_phase(ring.empty(), ring.parity ^ 1);
                copy_left(ring.stage(), tile.row * T::M, depth);
                arrive_when_copied(ring.full());
                store_right(ring.stage());
                show_to_warpgroups();
                arrive_at(ring.full());
                ring.next();
                const bool last = depth + T::DEPTH >= k;
                load_right((last ? following : tile.col) * T::N, last ? 0 : depth + T::DEPTH);
            }
        }
    }
};

/// A warpgroup's fragments of a stage of A: two steps of 16 depths, three thirds of each.
struct LeftThirds {
    unsigned int part[2][3][4];

    __device__ void read(unsigned int stage, int row) {
#pragma unroll
        for (int step = 0; step < 2; ++step)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float4 v = load_shared4(stage + left_piece(row + 8 * half, 4 * step + warp_lane() % 4));
                unsigned int(&to)[3][4] = part[step];
                split_thirds(v.x, v.y, to[0][half], to[1][half], to[2][half]);
                split_thirds(v.z, v.w, to[0][half + 2], to[1][half + 2], to[2][half + 2]);
            }
    }
};

/// One batch: sum = a b of a stage. The smallest products come first: the matrix pipe cuts sums short, and what it cuts
/// off grows with them.
template <class T>
__device__ void multiply_stage(float (&sum)[16][4], const LeftThirds& a, unsigned int stage) {
    constexpr int ORDER[6][2] = {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}};
    const unsigned long long b = operand_at(stage + T::LEFT, T::COLUMN);
    open_batch();
#pragma unroll
    for (int i = 0; i < 6; ++i)
#pragma unroll
        for (int step = 0; step < 2; ++step)
            multiply_thirds(sum, a.part[step][ORDER[i][0]], moved(b, ORDER[i][1] * T::THIRD + step * 16 * T::ROW),
                            i + step == 0);
    close_batch();
}

/// c = f(total + bias) of this lane's rows, `row` and 8 below it, and columns: two neighbours of every eight.
template <class F>
__device__ void store_totals(const float (&total)[16][4], const float* bias, float* c, int m, int n, int row, int col,
                             F f) {
    float* const to = c + static_cast<long long>(row) * n + col;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        if (col + 8 * j >= n) continue;
        const float2 none = make_float2(0.0f, 0.0f);
        const float* const at = bias + col + 8 * j;
        const float2 added = bias != nullptr ? make_float2(__ldg(at), __ldg(at + 1)) : none;
#pragma unroll
        for (int half = 0; half < 2; ++half)
            if (row + 8 * half < m)
                *reinterpret_cast<float2*>(to + 8ll * half * n + 8 * j) =
                    make_float2(f(total[j][2 * half] + added.x), f(total[j][2 * half + 1] + added.y));
    }
}

/// A warpgroup that multiplies. It adds the sums of a stage to the totals as FP32 is, and splits the next stage of A,
/// while the other warpgroup has the matrix pipe: until a batch is over, no register of its operands may get a new use,
/// which the compiler does not see to.
template <class T, class F>
__device__ void add_thirds(StageRing<T> ring, const float* bias, float* c, int m, int n, int k, F f) {
    const int row = (threadIdx.x / 32 - 4) * 16 + warp_lane() / 4;
#pragma unroll 1
    for (TileWalk<T> walk(m, n); walk.inside(); walk.next()) {
        float total[16][4] = {}, sum[16][4];
#pragma unroll 1
        for (int left = depth_tiles<T>(k); left > 0; --left) {
            LeftThirds thirds;
            await_phase(ring.full(), ring.parity);
            thirds.read(ring.stage(), row);
            multiply_stage<T>(sum, thirds, ring.stage());
            wait_for_batches<0>(sum);
            __syncwarp();
            if (warp_lane() == 0) arrive_at(ring.empty());
            ring.next();
#pragma unroll
            for (int i = 0; i < 64; ++i) total[i / 4][i % 4] += sum[i / 4][i % 4];
        }
        const BlockTile tile = walk.tile();
        store_totals(total, bias, c, m, n, tile.row * T::M + row, tile.col * T::N + warp_lane() % 4 * 2, f);
    }
}

/// c = f(a b + bias) by the blocks of a 1-D grid, no more than there are tiles, rows of whole 16 bytes. `shared` has
/// room for all stages and 1 KiB, to whose multiples they are aligned, and 16 bytes for each stage's barriers.
template <class T, class F>
__device__ void multiply_in_thirds(const float* a, const float* b, const float* bias, float* c, int m, int n, int k,
                                   void* shared, F f) {
    const StageRing<T> ring((shared_address(shared) + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < T::STAGES; ++stage) {
            start_barrier(ring.full() + 8 * stage, 256);  // each copying thread: its copies, and what it stored
            start_barrier(ring.empty() + 8 * stage, 8);   // each multiplying warp
        }
        show_barriers();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        shrink_registers<T::COPYING_REGISTERS>();
        ThirdsSource<T>{a, b, m, n, k}.fill(ring);
    } else {
        grow_registers<T::MULTIPLYING_REGISTERS>();
        add_thirds<T>(ring, bias, c, m, n, k, f);
    }
}

#endif
