#pragma once

#include <cuda_pipeline.h>

#include "products/gemm_tile.cuh"
#include "tensor_cores/ptx.cuh"

// Tiled products on the tensor cores, FP32 sums. Copies to shared memory are asynchronous and STAGES tiles deep;
// fragments are read one step ahead of the matrix instructions.

/// What the operands are: Memory in global memory, Word as it is moved (the bits of 16-bit elements). KIND chooses the
/// instruction, STEP is its depth, VECTOR elements are 16 bytes. Rows in shared memory are longer than the tile by the
/// padding with which fragment reads meet no bank twice.
struct Half {
    using Memory = __half;
    using Word = unsigned short;
    static constexpr int KIND = 0, STEP = 16, VECTOR = 8, PAD_ALONG = 8, PAD_ACROSS = 8;
};

struct Bfloat {
    using Memory = unsigned short;
    using Word = unsigned short;
    static constexpr int KIND = 1, STEP = 16, VECTOR = 8, PAD_ALONG = 8, PAD_ACROSS = 8;
};

struct Tf32 {
    using Memory = float;
    using Word = float;
    static constexpr int KIND = 2, STEP = 8, VECTOR = 4, PAD_ALONG = 4, PAD_ACROSS = 8;
};

/// Floats as the sum of two tf32 each, of whose products the smallest is left out: nearly FP32's precision at a third of
/// the rate. What is not finite becomes NaN.
struct Tf32Pair : Tf32 {};

template <class E>
__device__ constexpr bool is_pair() { return false; }
template <>
__device__ constexpr bool is_pair<Tf32Pair>() { return true; }

/// Floats as the sum of three bfloat16 each, by warpgroups (thirds_tile.cuh); by warps as pairs.
struct BfloatTriple : Tf32Pair {};

template <>
__device__ constexpr bool is_pair<BfloatTriple>() { return true; }

/// e4m3: 8 bits, of which no instruction turns single ones, so that operands across the depth are read byte by byte.
struct Float8 {
    using Memory = unsigned char;
    using Word = unsigned char;
    static constexpr int KIND = 3, STEP = 32, VECTOR = 16, PAD_ALONG = 16, PAD_ACROSS = 16;
};

/// A block's tile of M x N outputs and 16 DEPTH_VECTORS bytes of depth.
template <class E, int M_, int N_, int DEPTH_VECTORS, int STAGES_, int WARPS_M_, int WARPS_N_, int RESIDENT_>
struct TensorTile {
    using Element = E;
    static constexpr int M = M_, N = N_, DEPTH = DEPTH_VECTORS * E::VECTOR, STAGES = STAGES_;
    static constexpr int WARPS_M = WARPS_M_, WARPS_N = WARPS_N_, THREADS = 32 * WARPS_M * WARPS_N;
    static constexpr int RESIDENT = RESIDENT_, STEPS = DEPTH / E::STEP;
    static constexpr bool BY_WARPGROUPS = false, BY_MAPS = false;
    static constexpr int CLUSTER = 1;
    static constexpr int ROWS = M / WARPS_M / 16, COLS = N / WARPS_N / 16;  // in blocks of 16
    static_assert(STEPS % 2 == 0 && STAGES >= 2);
};

template <class E, int STAGES>
using Wide = TensorTile<E, 128, 256, 8, STAGES, 2, 4, 1>;
template <class E, int STAGES>  // pairs need registers to be split in: twice as many warps
using Square = TensorTile<E, 128, 128, 8, STAGES, 2, is_pair<E>() ? 4 : 2, STAGES < 4 && !is_pair<E>() ? 2 : 1>;
template <class E, int STAGES>
using Compact = TensorTile<E, 64, 64, 4, STAGES, 2, 2, 4>;
template <class E, int STAGES>  // small products: blocks for all multiprocessors, and most of the depth on its way at once
using Deep = TensorTile<E, 64, 32, 8, STAGES, 2, 2, 1>;
template <class E, int STAGES>
using Tiny = TensorTile<E, 32, 32, 8, STAGES, 2, 2, 1>;

/// One operand: LINES rows of A or columns of B. ALONG says that each line's depth is contiguous in memory; the tile in
/// shared memory has the same order. WIDTH elements are copied at once: a 16-byte vector, or single ones.
template <class T, int LINES, bool ALONG, int WIDTH>
struct Operand {
    using Word = typename T::Element::Word;
    static constexpr int ROWS = ALONG ? LINES : T::DEPTH, COLS = ALONG ? T::DEPTH : LINES;
    static constexpr int PITCH = COLS + (ALONG ? T::Element::PAD_ALONG : T::Element::PAD_ACROSS);
    static constexpr int SIZE = ROWS * PITCH;
    static constexpr int ACROSS = COLS / WIDTH, APART = T::THREADS / ACROSS, COUNT = ROWS / APART;
    static constexpr int UNROLLED = WIDTH > 1 ? COUNT : 4;
    static_assert(T::THREADS % ACROSS == 0 && ROWS % APART == 0);
    const Word* from;
    long long length;  // of a row in memory
    int lines, depth;  // left in the matrix from the tile's first on

    __device__ void start(const Word* matrix, int line, int all_lines, int all_depth) {
        const int row = threadIdx.x / ACROSS, col = threadIdx.x % ACROSS * WIDTH;
        length = ALONG ? all_depth : all_lines;
        from = matrix + row * length + col + line * (ALONG ? length : 1);
        lines = all_lines - line;
        depth = all_depth;
    }

    /// The next tile; what lies outside the matrix is zero.
    __device__ void copy(Word* shared) {
        const int row = threadIdx.x / ACROSS, col = threadIdx.x % ACROSS * WIDTH;
        const Word* source = from;
#pragma unroll UNROLLED
        for (int i = 0; i < COUNT; ++i, source += APART * length) {
            const int at = row + i * APART;
            const bool inside = ALONG ? at < lines && col < depth : at < depth && col < lines;
            Word* const to = shared + at * PITCH + col;
            if constexpr (WIDTH > 1) __pipeline_memcpy_async(to, source, 16, inside ? 0 : 16);
            else *to = inside ? *source : Word(0);
        }
        from += ALONG ? T::DEPTH : T::DEPTH * length;
        depth -= T::DEPTH;
    }

    /// Where the block of 16 lines from `line` on lies at `depth` of a stage.
    __device__ static const Word* block(const Word* stage, int line, int depth) {
        return stage + (ALONG ? line * PITCH + depth : depth * PITCH + line);
    }

    __device__ static void read(unsigned int (&r)[4], const Word* stage, int line, int depth) {
        const Word* const at = block(stage, line, depth);
        if constexpr (T::Element::KIND == Float8::KIND) {
            if constexpr (ALONG) load_lines(r, reinterpret_cast<const unsigned short*>(at), PITCH / 2);
            else gather(r, at);
        } else if constexpr (T::Element::KIND != Tf32::KIND) {
            if constexpr (ALONG) load_lines(r, at, PITCH);
            else load_turned(r, at, PITCH);
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int l = warp_lane() / 4 + i % 2 * 8, d = warp_lane() % 4 + i / 2 * 4;
                const float x = at[ALONG ? l * PITCH + d : d * PITCH + l];
                r[i] = is_pair<typename T::Element>() ? __float_as_uint(x) : to_tf32(x);
            }
        }
    }

    /// Four bytes of a line's depth as a register.
    __device__ static void gather(unsigned int (&r)[4], const Word* at) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Word* const first = at + (warp_lane() % 4 * 4 + i / 2 * 16) * PITCH + warp_lane() / 4 + i % 2 * 8;
            r[i] = 0;
#pragma unroll
            for (int e = 0; e < 4; ++e) r[i] |= static_cast<unsigned int>(first[e * PITCH]) << 8 * e;
        }
    }
};

/// Both operands of a product, and the stages that they share.
template <class T_, bool LEFT_ALONG, bool RIGHT_ALONG, int WIDTH_>
struct Operands {
    using T = T_;
    using Word = typename T::Element::Word;
    using Left = Operand<T, T::M, LEFT_ALONG, WIDTH_>;
    using Right = Operand<T, T::N, RIGHT_ALONG, WIDTH_>;
    static constexpr int WIDTH = WIDTH_, STAGE = Left::SIZE + Right::SIZE;
    Left left;
    Right right;

    __device__ void copy(Word* stage) {
        left.copy(stage);
        right.copy(stage + Left::SIZE);
    }
};

/// The warp's part of a block's tile.
template <class T>
struct WarpPlace {
    int row, col;

    __device__ WarpPlace() {
        const int warp = threadIdx.x / 32;
        row = warp / T::WARPS_N * (T::M / T::WARPS_M);
        col = warp % T::WARPS_N * (T::N / T::WARPS_N);
    }
};

/// The larger part of floats as tf32; `small` gets what that leaves, as tf32.
__device__ inline void split(const unsigned int (&whole)[4], unsigned int (&large)[4], unsigned int (&small)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        large[i] = to_tf32(__uint_as_float(whole[i]));
        small[i] = to_tf32(__uint_as_float(whole[i]) - __uint_as_float(large[i]));
    }
}

/// A warp's fragments as registers of mma.sync.
template <class O>
struct MmaFragments {
    using T = typename O::T;
    unsigned int a[T::ROWS][4], b[T::COLS][4];

    __device__ void read(const typename O::Word* stage, int step, const WarpPlace<T>& place) {
        const int depth = step * T::Element::STEP;
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i) O::Left::read(a[i], stage, place.row + 16 * i, depth);
#pragma unroll
        for (int j = 0; j < T::COLS; ++j) O::Right::read(b[j], stage + O::Left::SIZE, place.col + 16 * j, depth);
    }

    __device__ void multiply(float (&sum)[T::ROWS][2 * T::COLS][4]) const {
        if constexpr (is_pair<typename T::Element>()) return multiply_pairs(sum);
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
            for (int n = 0; n < 2 * T::COLS; ++n) {
                const int j = i % 2 ? 2 * T::COLS - 1 - n : n;
                multiply_lanes<T::Element::KIND>(sum[i][j], a[i], b[j / 2][j % 2], b[j / 2][j % 2 + 2]);
            }
    }

    /// The small products first. Tensor cores cut sums short, always towards zero, which over a long depth adds up; so the
    /// instructions sum up one step each, and the steps are added as FP32 is (Ootomo and Yokota 2022).
    __device__ void multiply_pairs(float (&sum)[T::ROWS][2 * T::COLS][4]) const {
#pragma unroll
        for (int j = 0; j < T::COLS; ++j) {
            unsigned int right[4], right_rest[4];
            split(b[j], right, right_rest);
#pragma unroll
            for (int i = 0; i < T::ROWS; ++i) {
                unsigned int left[4], left_rest[4];
                split(a[i], left, left_rest);
#pragma unroll
                for (int n = 0; n < 2; ++n) {
                    float step[4] = {};
                    multiply_lanes<Tf32::KIND>(step, left_rest, right[n], right[n + 2]);
                    multiply_lanes<Tf32::KIND>(step, left, right_rest[n], right_rest[n + 2]);
                    multiply_lanes<Tf32::KIND>(step, left, right[n], right[n + 2]);
#pragma unroll
                    for (int e = 0; e < 4; ++e) sum[i][2 * j + n][e] += step[e];
                }
            }
        }
    }
};

/// Adds the product of `tiles` depth tiles to `sum`, whatever kind of fragments and sums these are.
template <class Fragments, class O, class Sums>
__device__ void multiply_stages(O& source, int tiles, typename O::Word* shared, Sums& sum) {
    using T = typename O::T;
    if (tiles == 0) return;
    for (int stage = 0; stage < T::STAGES - 1; ++stage) {
        if (stage < tiles) source.copy(shared + stage * O::STAGE);
        __pipeline_commit();
    }
    __pipeline_wait_prior(T::STAGES - 2);
    __syncthreads();
    const WarpPlace<T> place;
    constexpr bool LONG = is_pair<typename T::Element>();  // a step takes longer than reading, and registers are few
    constexpr int HELD = LONG ? 1 : 2, UNROLLED = LONG ? 1 : T::STEPS;
    Fragments fragments[HELD];
    fragments[0].read(shared, 0, place);
    int read = 0, write = T::STAGES - 1;
#pragma unroll 1
    for (int left = tiles; left > 0; --left) {
#pragma unroll UNROLLED
        for (int step = 0; step < T::STEPS; ++step) {
            if (LONG) fragments[0].multiply(sum);
            if (step == T::STEPS - 1) {
                __pipeline_wait_prior(T::STAGES - 2);
                __syncthreads();
                if (left > 1) read = read + 1 == T::STAGES ? 0 : read + 1;
            }
            fragments[(step + 1) % HELD].read(shared + read * O::STAGE, (step + 1) % T::STEPS, place);
            if (step == 0) {
                if (left > T::STAGES - 1) source.copy(shared + write * O::STAGE);
                __pipeline_commit();
                write = write + 1 == T::STAGES ? 0 : write + 1;
            }
            if (!LONG) fragments[step % HELD].multiply(sum);
        }
    }
}

/// c = f(sum + bias of its column), in pairs where rows are whole pairs; a null bias is none.
template <class T, class F>
__device__ void store_sums(const float (&sum)[T::ROWS][2 * T::COLS][4], const float* bias, float* c, int m, int n,
                           int row, int col, F f) {
#pragma unroll
    for (int j = 0; j < 2 * T::COLS; ++j) {
        const int at = col + 8 * j + warp_lane() % 4 * 2;
        const float first = bias != nullptr && at < n ? __ldg(bias + at) : 0.0f;
        const float second = bias != nullptr && at + 1 < n ? __ldg(bias + at + 1) : 0.0f;
#pragma unroll
        for (int i = 0; i < 2 * T::ROWS; ++i) {
            const int line = row + 8 * i + warp_lane() / 4;
            if (line >= m || at >= n) continue;
            float* const to = c + static_cast<long long>(line) * n + at;
            const float x = f(sum[i / 2][j][i % 2 * 2] + first), y = f(sum[i / 2][j][i % 2 * 2 + 1] + second);
            if (n % 2 == 0) *reinterpret_cast<float2*>(to) = make_float2(x, y);
            else if (to[0] = x, at + 1 < n) to[1] = y;
        }
    }
}
