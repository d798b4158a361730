#include "layers/activations.cuh"
#include "tensor_cores/warpgroup_tile.cuh"

// Products of one tile with itself over and over, from registers or from shared memory: nothing waits for memory.
constexpr int ROWS = 128, COLS = 256, DEPTH = 64;

extern __shared__ __align__(128) unsigned char stage[];

/// Instructions of a warp, both operands in registers: eight warps, each with 16 rows and 64 columns at a time.
struct ByWarps {
    static constexpr int STEPS = DEPTH / 16, BLOCKS = 8;

    /// Two neighbours of a row of halves.
    __device__ static unsigned int pair(const half* row, int depth) {
        return *reinterpret_cast<const unsigned int*>(row + depth);
    }

    __device__ static void multiply(const half* a, const half* b, float* c, int rounds) {
        const int line = threadIdx.x / 32 * 16 + warp_lane() / 4, own = warp_lane() % 4 * 2;
        unsigned int left[STEPS][4];
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                left[step][i] = pair(a + (line + i % 2 * 8) * DEPTH, step * 16 + i / 2 * 8 + own);
#pragma unroll 1
        for (int col = 0; col < COLS; col += 8 * BLOCKS) {
            unsigned int right[STEPS][BLOCKS][2];
#pragma unroll
            for (int step = 0; step < STEPS; ++step)
#pragma unroll
                for (int i = 0; i < 2 * BLOCKS; ++i)
                    right[step][i / 2][i % 2] =
                        pair(b + (col + i / 2 * 8 + warp_lane() / 4) * DEPTH, step * 16 + i % 2 * 8 + own);
            float sum[BLOCKS][4] = {};
#pragma unroll 1
            for (int round = 0; round < rounds; ++round)
#pragma unroll
                for (int step = 0; step < STEPS; ++step)
#pragma unroll
                    for (int i = 0; i < BLOCKS; ++i)
                        multiply_lanes<Half::KIND>(sum[i], left[step], right[step][i][0], right[step][i][1]);
#pragma unroll
            for (int i = 0; i < BLOCKS; ++i)
#pragma unroll
                for (int down = 0; down < 2; ++down)
                    *reinterpret_cast<float2*>(c + (line + 8 * down) * COLS + col + 8 * i + own) =
                        make_float2(sum[i][2 * down], sum[i][2 * down + 1]);
        }
    }
};

#ifndef CPU_CUDA

/// Instructions of a warpgroup, both operands in shared memory: two of them, each with 64 rows.
struct ByWarpgroups {
    using Tile = Warpgroups<Half, 3>;
    static_assert(Tile::M == ROWS && Tile::N == COLS && Tile::DEPTH == DEPTH);

    __device__ static void multiply(const half* a, const half* b, float* c, int rounds) {
        const unsigned int shared = (shared_address(stage) + 1023) / 1024 * 1024;
        SwizzledOperand<Tile, ROWS, true> rows_of_a;
        SwizzledOperand<Tile, COLS, true> columns_of_b;
        rows_of_a.start(reinterpret_cast<const unsigned short*>(a), 0, ROWS, DEPTH);
        columns_of_b.start(reinterpret_cast<const unsigned short*>(b), 0, COLS, DEPTH);
        rows_of_a.copy(shared);
        columns_of_b.copy(shared + Tile::LEFT);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        show_to_warpgroups();
        __syncthreads();
        float sum[1][2 * Tile::COLS][4] = {};
#pragma unroll 1
        for (int round = 0; round < rounds; ++round) {
            multiply_depth_tile<Tile, true, true>(shared, sum);
            wait_for_earlier_batches();
        }
        wait_for_batches<0>(sum[0]);
        store_sums<Tile>(sum, nullptr, c, ROWS, COLS, threadIdx.x / 32 * 16, 0, Identity{});
    }
};

#endif

/// Of each block c = rounds a b', for a [128, 64] and b [256, 64].
template <class Way>
__global__ void __launch_bounds__(256, 1) tensor_products(const half* a, const half* b, float* c, int rounds) {
    Way::multiply(a, b, c + static_cast<long long>(blockIdx.x) * ROWS * COLS, rounds);
}
