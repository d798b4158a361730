#include "gemm_tile.cuh"

template <class T, int WIDTH>
__device__ void store_rows(float* c, int m, int n, int row, int col, const Place<T>& place,
                           const float (&sum)[T::ROWS][T::COLS]) {
#pragma unroll
    for (int i = 0; i < T::ROWS; ++i) {
        if (row + place.row_at(i) >= m) continue;
        float* const line = c + static_cast<long long>(row + place.row_at(i)) * n;
#pragma unroll
        for (int j = 0; j < T::COLS; j += WIDTH) {
            const int at = col + place.col_at(j);
            if (at >= n) continue;
            const float* const from = sum[i] + j;
            if constexpr (WIDTH == 4) store4(line + at, make_float4(from[0], from[1], from[2], from[3]));
            else line[at] = from[0];
        }
    }
}

template <class T, int WIDTH>
struct OperandCopies {
    TurningCopy<T, T::M> left;
    StraightCopy<T, T::N, WIDTH> right;
    int depth, tiles;

    __device__ void copy(float* stage) {
        left.copy(stage, depth);
        right.copy(stage + T::DEPTH * T::PITCH_M, depth);
        depth -= T::DEPTH;
        --tiles;
    }

    __device__ void next() {}
};

/// c = a b, a tile per block. WIDTH is 4 where the rows of b and c are whole groups of four floats, else 1.
template <class T, int WIDTH>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ __align__(16) float shared[T::SHARED];
    const BlockTile tile((m + T::M - 1) / T::M, (n + T::N - 1) / T::N, 16);
    const int row = tile.row * T::M, col = tile.col * T::N;
    const Place<T> place;
    OperandCopies<T, WIDTH> source;
    source.left.start(a + (row + source.left.first()) * static_cast<long long>(k),
                      source.left.APART * static_cast<long long>(k), m - row);
    source.right.start(b, n, col);
    source.depth = k;
    source.tiles = depth_tiles<T>(k);
    float sum[T::ROWS][T::COLS] = {};
    multiply_tiles<T>(source, source.tiles, shared, place, sum);
    combine_slices<T>(shared, place, sum);
    if (place.slice == 0) store_rows<T, WIDTH>(c, m, n, row, col, place, sum);
}

extern "C" __global__ void matmul_naive(const float* a, const float* b, float* c, int m, int n, int k) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    const float* const line = a + static_cast<long long>(row) * k;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum = fmaf(line[i], b[static_cast<long long>(i) * n + col], sum);
    c[static_cast<long long>(row) * n + col] = sum;
}
