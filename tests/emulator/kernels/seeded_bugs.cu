// One bug per kernel, at the lines marked BUG; with FIXED defined each is the same kernel without it.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <mma.h>

#ifdef FIXED
#define BARRIER_IF_FIXED() __syncthreads()
#define WARP_BARRIER_IF_FIXED() __syncwarp()
#define IS_FIXED 1
#else
#define BARRIER_IF_FIXED()
#define WARP_BARRIER_IF_FIXED()
#define IS_FIXED 0
#endif

__global__ void global_past_end(const float* x, float* y) {
    const int i = threadIdx.x;
    y[i] = i + 1 < 64 || !IS_FIXED ? x[i + 1] : 0;  // BUG
}

__global__ void shared_overflow_pointer(const float* x, float* y) {
    __shared__ float first[64];
    float* p = first;
    p[IS_FIXED || threadIdx.x < 63 ? threadIdx.x : 64] = x[threadIdx.x];  // BUG
    __syncthreads();
    y[threadIdx.x] = first[0] * 0;
}

__global__ void shared_overflow_index(const float* x, float* y) {
    __shared__ float last[64];
    last[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) last[IS_FIXED ? 63 : 64] = 1;  // BUG
    __syncthreads();
    y[threadIdx.x] = last[threadIdx.x] * 0;
}

__global__ void dynamic_overflow(const float* x, float* y) {
    extern __shared__ float tile[];
    tile[IS_FIXED || threadIdx.x < 63 ? threadIdx.x : 64] = x[threadIdx.x];  // BUG
    __syncthreads();
    y[threadIdx.x] = tile[0] * 0;
}

__global__ void misaligned_vector(const float* x, float* y) {
    const float4 v = *reinterpret_cast<const float4*>(x + (IS_FIXED ? 0 : 1));  // BUG
    y[threadIdx.x] = v.x * 0;
}

__global__ void undefined_shift(const float* x, float* y) {
    const int bits = 1 << (IS_FIXED ? 3 : static_cast<int>(threadIdx.x));  // BUG
    y[threadIdx.x] = bits * 0 + x[threadIdx.x];
}

__global__ void missing_barrier_exchange(const float* x, float* y) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];  // BUG
    BARRIER_IF_FIXED();
    y[threadIdx.x] = tile[63 - threadIdx.x];  // BUG
}

__global__ void missing_barrier_reduction(const float* x, float* y) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];  // BUG
        BARRIER_IF_FIXED();
    }
    __syncthreads();
    y[threadIdx.x] = tile[0];
}

// The maximum and the sum share one slot (as in a published softmax): comparing orders alone need not see it.
__global__ void missing_barrier_broadcast(const float* x, float* y) {
    __shared__ float slot;
    if (threadIdx.x == 0) slot = 5;
    __syncthreads();
    const float shift = slot;  // BUG
    BARRIER_IF_FIXED();
    if (threadIdx.x == 0) slot = 7;  // BUG
    __syncthreads();
    y[threadIdx.x] = x[threadIdx.x] - shift + slot;
}

// 8x8 matrices in 4x4 tiles, one block of 64 threads of which each writes one element.
__global__ void missing_second_barrier(const float* x, float* y) {
    __shared__ float a[8][4], b[4][8];
    const int row = threadIdx.x / 8, column = threadIdx.x % 8;
    float sum = 0;
    for (int k = 0; k < 8; k += 4) {
        if (column < 4) a[row][column] = x[row * 8 + k + column];  // BUG
        if (row < 4) b[row][column] = x[(k + row) * 8 + column];  // BUG
        __syncthreads();
        for (int j = 0; j < 4; ++j) sum += a[row][j] * b[j][column];  // BUG
        BARRIER_IF_FIXED();
    }
    y[threadIdx.x] = sum;
}

__global__ void missing_syncwarp(const float* x, float* y) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int half = 32; half > 0; half /= 2) {
            const float other = tile[threadIdx.x + half];  // BUG
            WARP_BARRIER_IF_FIXED();
            tile[threadIdx.x] += other;  // BUG
            WARP_BARRIER_IF_FIXED();
        }
        y[threadIdx.x] = tile[0];  // BUG
    } else {
        y[threadIdx.x] = 0;
    }
}

__global__ void unsynchronised_sum(const float* x, float* y) {
    if (IS_FIXED) atomicAdd(y, x[threadIdx.x]);
    else y[0] += x[threadIdx.x];  // BUG
}

// y holds two halves; each block needs what the other one wrote.
__global__ void barrier_for_grid_sync(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    y[i] = x[i] + 1;  // BUG
    if (IS_FIXED) cooperative_groups::this_grid().sync();
    else __syncthreads();
    y[n + i] = y[n - 1 - i];  // BUG
}

__global__ void unwritten_shared(const float* x, float* y) {
    __shared__ float tile[64];
    if (threadIdx.x < 32 || IS_FIXED) tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[threadIdx.x];  // BUG
}

__global__ void divergent_barrier(const float* x, float* y) {
    if (IS_FIXED) {
        __syncthreads();
    } else if (threadIdx.x < 32) {
        __syncthreads();  // BUG
    } else {
        __syncthreads();  // BUG
    }
    y[threadIdx.x] = x[threadIdx.x];
}

__global__ void skipped_barrier(const float* x, float* y) {
    if (threadIdx.x < 40 || IS_FIXED) {
        __syncthreads();  // BUG
        y[threadIdx.x] = x[threadIdx.x];
    }
}

__global__ void skipped_barrier_in_loop(const float* x, float* y) {
    for (unsigned i = threadIdx.x; i < (IS_FIXED ? 64 + threadIdx.x : 70); i += 32) {
        __syncthreads();  // BUG
        y[i & 63] = x[i & 63];
    }
}

__global__ void skipped_syncwarp(const float* x, float* y) {
    if ((threadIdx.x & 31) < 20 || IS_FIXED) {
        y[threadIdx.x] = x[threadIdx.x];
        __syncwarp();  // BUG
    }
}

__global__ void skipped_vote(const float* x, float* y) {
    if ((threadIdx.x & 31) < 20 || IS_FIXED) y[threadIdx.x] = __any_sync(0xffffffffu, x[threadIdx.x] > 0);  // BUG
}

__global__ void shuffle_against_barrier(const float* x, float* y) {
    float value = x[threadIdx.x];
    if (IS_FIXED || threadIdx.x >= 16) value = __shfl_sync(0xffffffffu, value, 3);  // BUG
    else __syncthreads();  // BUG
    y[threadIdx.x] = value;
}

__global__ void shuffle_from_exited_lane(const float* x, float* y) {
    if (threadIdx.x == 3 && !IS_FIXED) return;
    y[threadIdx.x] = __shfl_sync(0xffffffffu, x[threadIdx.x], 3);  // BUG
}

__global__ void missing_pipeline_wait(const float* x, float* y) {
    __shared__ float tile[64];
    __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    if (IS_FIXED) __pipeline_wait_prior(0);
    __syncthreads();
    y[threadIdx.x] = tile[63 - threadIdx.x];  // BUG
}

__global__ void unfenced_ticket(const float* x, float* y, unsigned int* arrived) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        y[blockIdx.x] = x[blockIdx.x];  // BUG
        if (IS_FIXED) __threadfence();
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) y[gridDim.x + threadIdx.x] = y[threadIdx.x];  // BUG
}

// A matrix's store waits for the warp before it writes, not after.
__global__ void read_after_matrix_store(const float* x, float* y) {
    __shared__ __align__(32) float tiles[2][256];
    float* const tile = tiles[threadIdx.x / 32];
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> sum;
    nvcuda::wmma::fill_fragment(sum, x[threadIdx.x / 32]);
    nvcuda::wmma::store_matrix_sync(tile, sum, 16, nvcuda::wmma::mem_row_major);  // BUG
    WARP_BARRIER_IF_FIXED();
    y[threadIdx.x] = tile[8 * (31 - threadIdx.x % 32)];  // BUG
}
