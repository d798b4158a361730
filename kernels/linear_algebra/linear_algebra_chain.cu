#include "launches/launch_overlap.cuh"

#include "../basic/matmul.cu"
#include "../basic/relu.cu"
#include "../basic/sigmoid.cu"
#include "../basic/softmax.cu"
#include "../basic/tanh_activation.cu"
#include "../tensor/axpby.cu"
#include "../tensor/broadcast_add.cu"
#include "../tensor/gemv.cu"
#include "../tensor/reduce_sum.cu"
#include "fused_gemv_operations.cu"
#include "fused_matmul_bias_activation.cu"
#include "la_cross_entropy_grad.cu"

/// The product alone on the tensor cores, as in tensor_core_matmul, whose source has shared memory of its own.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, int WIDTH>
CLUSTERED(T) __global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
    half_matmul(__grid_constant__ const OperandOf<T> x, __grid_constant__ const OperandOf<T> w, __grid_constant__ const SumsOf<T> logits,
                int rows, int cols, int inputs) {
    multiply_on_tensor_cores<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>(x, w, nullptr, logits, rows, cols, inputs, stages,
                                                                Identity{});
}

/// What stands behind the logits of a row: its gradient, and what the row adds to the steps.
struct RowSteps {
    const int* label;
    const float *direction, *before;
    float *gradient, *steps;
    float alpha, beta, weight;  // weight: one over the rows
    int rows, cols;

    /// The gradient of probability p in `column`, and its part of the product with the direction.
    __device__ float gradient_of(float p, int column, int right) const {
        const float error = column == right ? p - 1.0f : p;
        return right >= 0 && right < cols ? error * weight : __int_as_float(0x7fffffff);
    }

    __device__ float step(int row, float product) const {
        return steps[row] = beta == 0.0f ? alpha * product : fmaf(alpha, product, beta * before[row]);
    }
};

// A row in the registers of a block, from logits to its step; the last block adds the steps.
template <int ITEMS, int WIDTH>
__global__ void __launch_bounds__(512)
    fused_row_steps(const float* logits, const int* label, const float* direction, const float* before, float* gradient,
                    float* steps, float* total, double* by_row, unsigned int* arrived, float alpha, float beta,
                    float weight_of_row, int rows, int cols) {
    const RowSteps to = {label, direction, before, gradient, steps, alpha, beta, weight_of_row, rows, cols};
    await_last_launch();
    const long long begin = static_cast<long long>(blockIdx.x) * cols;
    const int right = label[blockIdx.x];
    float item[ITEMS];
    load_items<ITEMS, WIDTH>(logits + begin, cols, -infinity(), item);
    MaxSum row = {-infinity(), 0.0f};
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) row.max = fmaxf(row.max, item[k]);
    row.max = block_max(row.max);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) row.sum += item[k] = weight(item[k], row.max, 1.0f);
    const float scale = 1.0f / block_sum(row.sum);
    float product = 0.0f;
    store_items<ITEMS, WIDTH>(gradient + begin, cols, item, [&](int place, Group<WIDTH> v) {
        const Group<WIDTH> along = load_group<WIDTH>(direction + place);
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) {
            v.at[w] = to.gradient_of(v.at[w] * scale, place + w, right);
            product = fmaf(v.at[w], along.at[w], product);
        }
        return v;
    });
    product = block_sum(product);
    double sum[] = {threadIdx.x == 0 ? to.step(blockIdx.x, product) : 0.0};
    if (grid_reduce<SumOf>(sum, by_row, arrived)) *total = static_cast<float>(sum[0]);
}

/// The sum of f over a lane's columns, in LONG rows eight at a time: of many equal terms one long sum would lose more than
/// 1e-6.
template <bool LONG, class F>
__device__ float sum_of_lane(int lane, int cols, F f) {
    constexpr int STEP = 32 * 8;
    float sum = 0.0f, part = 0.0f;
#pragma unroll 8
    for (int c = lane; c < cols; c += 32) {
        part = f(c, part);
        if (LONG && (c / STEP != (c + 32) / STEP || c + 32 >= cols)) sum += part, part = 0.0f;
    }
    return LONG ? sum : part;
}

/// The same for one row by a warp; logit(column) is asked for three times.
template <bool LONG, class Logit>
__device__ float finish_row(const RowSteps& to, int row, Logit logit) {
    const int lane = threadIdx.x % 32, right = to.label[row];
    const long long begin = static_cast<long long>(row) * to.cols;
    MaxSum own = {-infinity(), 0.0f};
#pragma unroll 8
    for (int c = lane; c < to.cols; c += 32) own.max = fmaxf(own.max, logit(c));
    own.max = warp_reduce(own.max, Max{});
    own.sum = sum_of_lane<LONG>(lane, to.cols, [&](int c, float part) { return part + weight(logit(c), own.max, 1.0f); });
    const float scale = 1.0f / warp_reduce(own.sum, Sum{});
    float product = sum_of_lane<LONG>(lane, to.cols, [&](int c, float part) {
        const float p = weight(logit(c), own.max, 1.0f) * scale;
        const float error = to.gradient[begin + c] = to.gradient_of(p, c, right);
        return fmaf(error, to.direction[c], part);
    });
    product = warp_reduce(product, Sum{});
    return lane == 0 ? to.step(row, product) : 0.0f;
}

// The whole chain in one launch. A softmax needs all tiles of its rows: the last block of a row of tiles finds them in the
// L2 cache and takes these rows on to their steps; the last row of tiles to finish adds the steps.
template <class T, int WIDTH, class F>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
    fused_linear_algebra(const float* x, const float* w, const float* bias, const int* label, const float* direction,
                         const float* before, float* gradient, float* steps, float* total, float* logits,
                         double* by_row, unsigned int* arrived, float alpha, float beta, float weight_of_row, int rows,
                         int cols, int inputs) {
    multiply_matrices<T, WIDTH, false>(x, w, bias, logits, rows, cols, inputs, F{});
    const int tile_rows = (rows + T::M - 1) / T::M, tile_cols = (cols + T::N - 1) / T::N;
    const int tile = BlockTile(tile_rows, tile_cols, 16).row;
    __threadfence();
    __syncthreads();
    if (!last_block(arrived + tile, tile_cols)) return;
    const RowSteps to = {label, direction, before, gradient, steps, alpha, beta, weight_of_row, rows, cols};
    double sum[] = {0.0};
    for (int row = tile * T::M + threadIdx.x / 32; row < min(rows, (tile + 1) * T::M); row += T::THREADS / 32) {
        const float* const from = logits + static_cast<long long>(row) * cols;
        sum[0] += finish_row<true>(to, row, [=](int c) { return __ldcg(from + c); });
    }
    if (grid_reduce<SumOf>(sum, by_row, arrived + tile_rows, tile, tile_rows)) *total = static_cast<float>(sum[0]);
}

/// Whole rows of up to 256 columns in a block.
template <class E, int STAGES>
using Rows = TensorTile<E, 16, 256, 16, STAGES, 1, 8, 1>;

// The whole chain on the tensor cores in one launch, for rows that a tile holds: no logit leaves its block, none waits for
// another. The last block to finish adds the steps.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, int WIDTH, class F>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
    fused_half_rows(const half* x, const half* w, const float* bias, const int* label, const float* direction,
                    const float* before, float* gradient, float* steps, float* total, double* by_row,
                    unsigned int* arrived, float alpha, float beta, float weight_of_row, int rows, int cols, int inputs) {
    using O = Operands<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>;
    using Word = typename O::Word;
    const int first = blockIdx.x * T::M, rows_here = min(T::M, rows - first);
    O source;
    source.left.start(reinterpret_cast<const Word*>(x), first, rows, inputs);
    source.right.start(reinterpret_cast<const Word*>(w), 0, cols, inputs);
    float sum[T::ROWS][2 * T::COLS][4] = {};
    multiply_stages<MmaFragments<O>>(source, depth_tiles<T>(inputs), reinterpret_cast<Word*>(stages), sum);
    __syncthreads();  // the stages are read, the logits may have their place
    float* const logits = reinterpret_cast<float*>(stages);
    const WarpPlace<T> place;
    store_sums<T>(sum, bias, logits, rows_here, cols, place.row, place.col, F{});
    __syncthreads();
    const RowSteps to = {label, direction, before, gradient, steps, alpha, beta, weight_of_row, rows, cols};
    double part[] = {0.0};
    for (int row = threadIdx.x / 32; row < rows_here; row += T::THREADS / 32)
        part[0] += finish_row<false>(to, first + row, [=](int c) { return logits[row * cols + c]; });
    if (grid_reduce<SumOf>(part, by_row, arrived)) *total = static_cast<float>(part[0]);
}
