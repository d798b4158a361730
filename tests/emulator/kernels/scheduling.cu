// Threads that wait for each other, in ways that end and in ways that do not.
#include <cooperative_groups.h>

__global__ void barrier_missed(int* y) {
    if (threadIdx.x < 32 || threadIdx.x == 40) __syncthreads();  // the first warp, and one of the second
    else y[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);
}

__global__ void early_exit(int* y) {
    if (threadIdx.x >= 48) return;
    __syncthreads();
    y[threadIdx.x] = 1;
}

__device__ void leaves(int* y, int first) {
    if (threadIdx.x >= first) return;
    __syncthreads();
    y[threadIdx.x] = 1;
}

__global__ void early_exit_in_a_function(int* y) { leaves(y, 48); }

// Lanes that a mask does not name may be elsewhere, or have ended.
__global__ void part_of_a_warp(int* y) {
    if ((threadIdx.x & 31) < 8) {
        __syncwarp(0xffu);
        y[threadIdx.x] = __any_sync(0xffu, 1);
    }
}

__global__ void returns_after_a_barrier(int* y) {
    __syncthreads();
    if (threadIdx.x >= 48) { y[threadIdx.x] = 2; return; }
    y[threadIdx.x] = 1;
    __syncthreads();
}

__global__ void flag_in_block(volatile int* flag, int* y) {
    if (threadIdx.x == 0) {
        while (*flag == 0) {}
        y[0] = *flag;
    } else if (threadIdx.x == 70) {
        *flag = 7;
    }
}

// Each block waits for the one before it, so whichever runs first must let the others go on.
__global__ void chain_of_blocks(int* progress, int* y) {
    const int before = static_cast<int>(blockIdx.x);
    if (threadIdx.x == 0) {
        while (atomicAdd(progress, 0) != before) __nanosleep(100);
        y[blockIdx.x] = before * before;
        __threadfence();
        atomicAdd(progress, 1);
    }
}

__global__ void spin_lock(int* lock, int* y) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    y[0] = y[0] + 1;
    __threadfence();
    atomicExch(lock, 0);
}

__global__ void waits_for_ever(volatile int* flag) {
    while (*flag == 0) {}
}

__global__ void sleeps_for_ever(int* flag) {
    while (atomicAdd(flag, 0) == 0) __nanosleep(10);
}

__global__ void meets_for_ever(int* flag) {
    while (flag[0] == 0) __syncthreads();
}

__global__ void grid_meets(int* y, int rounds) {
    const auto grid = cooperative_groups::this_grid();
    const int n = static_cast<int>(grid.size()), i = static_cast<int>(grid.thread_rank());
    __shared__ int mine[64];
    mine[threadIdx.x] = i;
    for (int round = 0; round < rounds; ++round) {
        const int next = y[(i + 1) % n];
        grid.sync();
        y[i] = next;
        grid.sync();
    }
    y[i] += 1000 * (mine[threadIdx.x] == i);
}

__global__ void gives_up(int* y) {
    if (threadIdx.x == 5) __trap();
    y[threadIdx.x] = 1;
}

__global__ void asserts(int* y) {
    assert(threadIdx.x < 9);
    y[threadIdx.x] = 1;
}

__global__ void order_of_threads(int* count, int* y) { y[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(count, 1); }

__global__ void clocks(long long* y) {
    const long long before = clock64();
    __nanosleep(1000);
    y[threadIdx.x] = clock64() - before;
}
