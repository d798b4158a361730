// Warps that hand over shared memory by barriers of some of the block's threads.
#include <cuda/barrier>

#define ARRIVE(id, threads) \
    asm volatile("bar.arrive %0, %1;" \
                 : : "r"(id), "n"(threads) : "memory")

__device__ __forceinline__ void sync_some(int id, int threads) { asm volatile("barrier.sync %0, %1;\n" ::"r"(id), "r"((threads)) : "memory"); }

// The first warp makes what the second one uses, twice through one tile: 1 says that it is full, 2 that it is empty.
template <bool Waits>
__global__ void handed_over(const float* x, float* y) {
    __shared__ float tile[32];
    const int lane = threadIdx.x % 32;
    for (int step = 0; step < 2; ++step) {
        if (threadIdx.x < 32) {
            if (step) sync_some(2, 64);
            tile[lane] = x[32 * step + lane];
            ARRIVE(1, 64);
        } else {
            if (Waits) sync_some(1, 64);
            y[32 * step + lane] = 2 * tile[31 - lane];
            if (!step) ARRIVE(2, 64);
        }
    }
}

// Each pair of warps meets at a barrier of its own; the last warp has 8 threads.
template <int Threads>
__global__ void pairs(const float* x, float* y) {
    __shared__ float tile[104];
    tile[threadIdx.x] = x[threadIdx.x];
    __barrier_sync_count(threadIdx.x / 64, Threads);
    const int first = threadIdx.x / 64 * 64, last = min(first + 63, 103);
    y[threadIdx.x] = tile[first + last - threadIdx.x];
}

__global__ void whole_block(const float* x, float* y) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    asm volatile("bar.sync 0;");
    y[threadIdx.x] = tile[63 - threadIdx.x];
    __barrier_sync(1);
}

__global__ void sixteen(float* y) { __barrier_sync_count(16, 64); }

template <bool Waits>
__global__ void counted(const float* x, float* y) {
    __shared__ float tile[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    for (int step = 0; step < 3; ++step) {
        tile[threadIdx.x] = x[64 * step + threadIdx.x];
        auto token = barrier.arrive();
        if (Waits) barrier.wait(std::move(token));
        y[64 * step + threadIdx.x] = 2 * tile[63 - threadIdx.x];
        barrier.arrive_and_wait();
    }
}

__global__ void dropped(const float* x, float* y) {
    __shared__ float tile[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, 64);
    __syncthreads();
    if (threadIdx.x >= 32) {
        tile[threadIdx.x - 32] = x[threadIdx.x];
        barrier.arrive_and_drop();
        return;
    }
    barrier.arrive_and_wait();
    y[threadIdx.x] = tile[31 - threadIdx.x];
    barrier.arrive_and_wait();
    tile[threadIdx.x] = 0;
}

__global__ void by_twos(float* y) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, 33);
    __syncthreads();
    barrier.arrive(2);
}

struct Block {
    unsigned thread_rank() const { return threadIdx.x; }
    unsigned size() const { return blockDim.x; }
};

__global__ void copied(const float* x, float* y) {
    __shared__ alignas(16) float tile[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(Block{}, tile, x, cuda::aligned_size_t<16>(sizeof tile), barrier);
    barrier.arrive_and_wait();
    y[threadIdx.x] = tile[63 - threadIdx.x];
}
