#include <mma.h>

#include "tensor_cores/tensor_tile.cuh"

namespace wmma = nvcuda::wmma;

extern __shared__ __align__(128) unsigned char stages[];

template <bool BY_ROWS>
struct Order {
    using Type = wmma::row_major;
};

template <>
struct Order<false> {
    using Type = wmma::col_major;
};

using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

/// A warp's fragments as those of the WMMA interface, 16 x 16 x 16.
template <class O, bool LEFT_ALONG, bool RIGHT_ALONG>
struct WmmaFragments {
    using T = typename O::T;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, typename Order<LEFT_ALONG>::Type> a[T::ROWS];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, typename Order<!RIGHT_ALONG>::Type> b[T::COLS];

    __device__ void read(const unsigned short* stage, int step, const WarpPlace<T>& place) {
        const half* const left = reinterpret_cast<const half*>(O::Left::block(stage, place.row, 16 * step));
        const half* const right =
            reinterpret_cast<const half*>(O::Right::block(stage + O::Left::SIZE, place.col, 16 * step));
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i)
            wmma::load_matrix_sync(a[i], left + 16 * i * (LEFT_ALONG ? O::Left::PITCH : 1), O::Left::PITCH);
#pragma unroll
        for (int j = 0; j < T::COLS; ++j)
            wmma::load_matrix_sync(b[j], right + 16 * j * (RIGHT_ALONG ? O::Right::PITCH : 1), O::Right::PITCH);
    }

    __device__ void multiply(Accumulator (&sum)[T::ROWS][T::COLS]) const {
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
            for (int n = 0; n < T::COLS; ++n) {
                const int j = i % 2 ? T::COLS - 1 - n : n;
                wmma::mma_sync(sum[i][j], a[i], b[j], sum[i][j]);
            }
    }
};

constexpr int PATCH_PITCH = 20, PATCH = 16 * PATCH_PITCH;

/// One block of 16 x 16, of which some outputs are missing or misaligned, by way of shared memory. A store waits for the
/// warp before it writes, not after: each lane reads what others wrote, and the next store writes what others read.
__device__ void store_block(float* c, int m, int n, int row, int col, float* patch, const Accumulator& sum) {
    wmma::store_matrix_sync(patch, sum, PATCH_PITCH, wmma::mem_row_major);
    __syncwarp();
    for (int i = warp_lane(); i < 256; i += 32) {
        const int line = row + i / 16, at = col + i % 16;
        if (line < m && at < n) c[static_cast<long long>(line) * n + at] = patch[i / 16 * PATCH_PITCH + i % 16];
    }
    __syncwarp();
}

template <class T>
__device__ void store_blocks(float* c, int m, int n, int row, int col, float* patch,
                             const Accumulator (&sum)[T::ROWS][T::COLS]) {
#pragma unroll
    for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
        for (int j = 0; j < T::COLS; ++j) {
            const int line = row + 16 * i, at = col + 16 * j;
            if (n % 8 == 0 && line + 16 <= m && at + 16 <= n)
                wmma::store_matrix_sync(c + static_cast<long long>(line) * n + at, sum[i][j], n, wmma::mem_row_major);
            else if (line < m && at < n) store_block(c, m, n, line, at, patch, sum[i][j]);
        }
}

/// c = a b in FP32 from half operands: a is [m, k] (LEFT_ALONG) or [k, m], b is [n, k] (RIGHT_ALONG) or [k, n].
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, int WIDTH>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
tensor_core_matmul_wmma(const half* a, const half* b, float* c, int m, int n, int k) {
    using O = Operands<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>;
    const BlockTile tile((m + T::M - 1) / T::M, (n + T::N - 1) / T::N, 16);
    const WarpPlace<T> place;
    O source;
    source.left.start(reinterpret_cast<const unsigned short*>(a), tile.row * T::M, m, k);
    source.right.start(reinterpret_cast<const unsigned short*>(b), tile.col * T::N, n, k);
    Accumulator sum[T::ROWS][T::COLS];
#pragma unroll
    for (int i = 0; i < T::ROWS * T::COLS; ++i) wmma::fill_fragment(sum[i / T::COLS][i % T::COLS], 0.0f);
    multiply_stages<WmmaFragments<O, LEFT_ALONG, RIGHT_ALONG>>(source, depth_tiles<T>(k),
                                                              reinterpret_cast<unsigned short*>(stages), sum);
    __syncthreads();
    float* const patch = reinterpret_cast<float*>(stages) + threadIdx.x / 32 * PATCH;
    store_blocks<T>(c, m, n, tile.row * T::M + place.row, tile.col * T::N + place.col, patch, sum);
}
