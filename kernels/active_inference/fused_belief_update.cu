#include "gaussian.cuh"

// mu += kappa (J^T (precision (o - g)) + (prior - mu) / variance), the last term where PRIOR. J [m, n] is read once: a
// warp owns 32 packets of columns and walks every 8th row of the block's split, weighing errors as it goes; the last of
// a column's splits to finish adds them all in order.
template <class T, bool PRIOR>
__global__ void __launch_bounds__(256)
    fused_belief_update(T* mu, const T* jacobian, const T* o, const T* g, const T* precision, const T* prior,
                        const T* variance, T* parts, unsigned int* arrived, T kappa, int m, int n, int splits) {
    constexpr int WIDTH = Packet<T>::WIDTH, COLS = 32 * WIDTH, WARPS = 8;
    __shared__ T by_warp[WARPS][COLS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int split = blockIdx.x % splits, tile = blockIdx.x / splits, block = tile * COLS, col = block + lane * WIDTH;
    const int share = (m + splits - 1) / splits, end = min(m, (split + 1) * share);
    T sum[WIDTH] = {};
    const bool whole = n % WIDTH == 0;
#pragma unroll 8
    for (int row = split * share + warp; row < end; row += WARPS) {
        const T error = PredictionError<T, true>{}(o[row], g[row], precision[row]);
        const T* const from = jacobian + static_cast<long long>(row) * n + col;
        if (whole) {
            if (col >= n) continue;
            const auto v = Packet<T>::load(from, 0);
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) sum[k] = fma(v.at[k], error, sum[k]);
        } else {
#pragma unroll
            for (int k = 0; k < WIDTH; ++k)
                if (col + k < n) sum[k] = fma(from[k], error, sum[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) by_warp[warp][lane * WIDTH + k] = sum[k];
    __syncthreads();
    const int c = threadIdx.x, column = block + c;
    const bool mine = c < COLS && column < n;
    T total = 0;
    if (mine)
#pragma unroll
        for (int w = 0; w < WARPS; ++w) total += by_warp[w][c];
    if (splits > 1) {
        if (mine) parts[static_cast<long long>(split) * n + column] = total;
        __syncthreads();  // the block's parts, before thread 0 tells of them
        if (!last_block(arrived + tile, splits)) return;
        total = 0;
        if (mine)
#pragma unroll 8
            for (int s = 0; s < splits; ++s) total += __ldcg(parts + static_cast<long long>(s) * n + column);
    }
    if (!mine) return;
    const T belief = mu[column];
    if constexpr (PRIOR) total += (prior[column] - belief) / variance[column];
    mu[column] = fma(kappa, total, belief);
}
