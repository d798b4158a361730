// Copies by the tensor memory accelerator and the barriers that count their bytes; each fault has a line with its name.
#include <cuda.h>
#include <cuda/barrier>

namespace cde = cuda::device::experimental;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

__device__ unsigned shared_place(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }

__device__ void start_barrier(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ void expect_bytes(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ void load_bytes(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"  // LOAD
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// The loop of CUTLASS's ClusterBarrier.
__device__ void wait_in_ptx(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n"
        ".reg .pred P1;\n\t"
        "LAB_WAIT:\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n\t"  // a comment
        "@P1 bra DONE;\n\t"
        "bra     LAB_WAIT;\n\t"
        "DONE:\n\t"
        "}" ::"r"(barrier), "r"(parity));
}

#define TEST_PARITY(done, barrier, parity) \
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}\n" \
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory")

__device__ void wait_in_a_loop(unsigned barrier, unsigned parity) {
    unsigned done = 0;
    while (!done) TEST_PARITY(done, barrier, parity);
}

enum Fault { NONE, PLACE, SIZE, GLOBAL, BARRIER, NO_WAIT, NO_EXPECT, TOO_MANY, TOO_FEW_BYTES, TOO_MANY_BYTES, BEYOND, EARLY };

// Two steps of 64 numbers through one tile of 256 bytes; each thread turns its number's place around.
template <int Wrong>
__global__ void turned(const float* x, float* y) {
    extern __shared__ __align__(128) char shared[];
    float* tile = reinterpret_cast<float*>(shared + 128 + (Wrong == PLACE ? 8 : 0));
    const unsigned full = shared_place(shared) + (Wrong == BARRIER ? 4 : 0), empty = shared_place(shared + 16);
    if (threadIdx.x == 0) {
        start_barrier(full, Wrong == NO_EXPECT ? 64 : 1);
        start_barrier(full + 32, 1);
        start_barrier(empty, 64);
    }
    __syncthreads();
    for (int step = 0; step < 2; ++step) {
        const unsigned now = Wrong == EARLY ? full + 32 * step : full, parity = Wrong == EARLY ? 0 : step;
        if (threadIdx.x == 0) {
            if (step && Wrong != EARLY) wait_in_ptx(empty, 0);
            if (Wrong != NO_EXPECT) expect_bytes(now, Wrong == TOO_FEW_BYTES ? 512 : Wrong == TOO_MANY_BYTES ? 128 : 256);
            const char* from = reinterpret_cast<const char*>(x + 64 * step) + (Wrong == GLOBAL ? 8 : Wrong == BEYOND ? 512 : 0);
            load_bytes(shared_place(tile), from, Wrong == SIZE ? 248 : 256, now);
        }
        if (Wrong == NO_EXPECT) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 1;" ::"r"(now) : "memory");
        if (Wrong == TOO_MANY) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 2;" ::"r"(now) : "memory");  // TOO_MANY
        if (Wrong != NO_WAIT) step ? wait_in_a_loop(now, parity) : wait_in_ptx(now, parity);
        y[64 * step + threadIdx.x] = tile[63 - threadIdx.x];  // READ
        asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(empty) : "memory");
    }
}

// The guide's example: a copy that all threads wait for by their tokens, a change, and a copy back.
template <int Wrong>
__global__ void increased(const float* x, float* y) {
    __shared__ alignas(128) float tile[1024];
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
        cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(tile, x + 1024 * blockIdx.x, cuda::aligned_size_t<16>(sizeof tile), barrier);
        token = cuda::device::barrier_arrive_tx(barrier, 1, Wrong == NO_EXPECT ? 0 : sizeof tile);
    } else {
        token = barrier.arrive();
    }
    if (Wrong != NO_WAIT) barrier.wait(std::move(token));
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[i] += 1;  // READ
    cde::fence_proxy_async_shared_cta();
    if (Wrong != EARLY) __syncthreads();
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_shared_to_global(y + 1024 * blockIdx.x, tile, sizeof tile);  // STORE
        cde::cp_async_bulk_commit_group();
        cde::cp_async_bulk_wait_group_read<0>();
    }
}

// A matrix by boxes of Rows x Columns, in two buffers; each thread doubles one number of each box and writes it back.
template <int Rows, int Columns, int Wrong>
__global__ void doubled(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, int boxes) {
    __shared__ alignas(1024) float tiles[2][Rows * Columns + 32];
    __shared__ Barrier full[2];
    constexpr unsigned bytes = Rows * Columns * sizeof(float);
    float* buffers[2] = {tiles[0] + (Wrong == PLACE ? 16 : 0), tiles[1]};
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; ++i) init(&full[i], 1);
    __syncthreads();
    const auto load = [&](int box) {
        cde::cp_async_bulk_tensor_2d_global_to_shared(buffers[box % 2], &from, Columns * box, -1, full[box % 2]);  // BOX
        cuda::device::barrier_arrive_tx(full[box % 2], 1, bytes);
    };
    if (threadIdx.x == 0) load(0);
    for (int box = 0; box < boxes; ++box) {
        if (threadIdx.x == 0 && box + 1 < boxes) {
            if (Wrong != EARLY) cde::cp_async_bulk_wait_group_read<0>();
            load(box + 1);
        }
        if (Wrong != NO_WAIT || box < 2) full[box % 2].wait_parity(box / 2 % 2);
        float* tile = buffers[box % 2];
        for (int i = threadIdx.x; i < Rows * Columns; i += blockDim.x) tile[i] *= 2;  // READ
        cde::fence_proxy_async_shared_cta();
        __syncthreads();
        if (threadIdx.x == 0) {
            cde::cp_async_bulk_tensor_2d_shared_to_global(&to, Columns * box, -1, tile);
            cde::cp_async_bulk_commit_group();
        }
    }
}

// One thread loads through three buffers, two warps add up what is there; a lane of each warp says that it is done.
__global__ void piped(const float* x, float* y, int steps) {
    __shared__ alignas(128) float tiles[3][64];
    __shared__ unsigned long long full[3], empty[3];
    if (threadIdx.x == 0)
        for (int i = 0; i < 3; ++i) {
            start_barrier(shared_place(&full[i]), 1);
            start_barrier(shared_place(&empty[i]), 2);
        }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int step = 0; threadIdx.x == 0 && step < steps; ++step) {
            const unsigned barrier = shared_place(&full[step % 3]);
            wait_in_ptx(shared_place(&empty[step % 3]), ~(step / 3) & 1);
            expect_bytes(barrier, 256);
            load_bytes(shared_place(tiles[step % 3]), x + 64 * step, 256, barrier);
        }
        return;
    }
    const int place = threadIdx.x - 32;
    float sum = 0;
    for (int step = 0; step < steps; ++step) {
        wait_in_ptx(shared_place(&full[step % 3]), step / 3 & 1);
        sum += tiles[step % 3][63 - place];
        __syncwarp();
        if (place % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_place(&empty[step % 3])) : "memory");
    }
    y[place] = sum;
}

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// What a box is in shared memory, byte by byte, at a multiple of 1024 and of Shift after one.
template <int Shift>
__global__ void shown(const __grid_constant__ TensorMap map, float* y, int x0, int y0, int bytes) {
    __shared__ alignas(1024) char tile[Shift + 8192];
    __shared__ unsigned long long word;
    const unsigned barrier = shared_place(&word);
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" : : "l"(&map) : "memory");
        start_barrier(barrier, 1);
        expect_bytes(barrier, bytes);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                     : : "r"(shared_place(tile + Shift)), "l"(&map), "r"(barrier), "r"(x0), "r"(y0) : "memory");
    }
    __syncthreads();
    wait_in_ptx(barrier, 0);
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) y[i] = reinterpret_cast<const float*>(tile + Shift)[i];
}

// The same box of three dimensions there and back, its stores waited for or left to the thread's end.
template <bool Waits>
__global__ void moved(const __grid_constant__ TensorMap from, const __grid_constant__ TensorMap to, int bytes) {
    extern __shared__ __align__(128) char tile[];
    __shared__ unsigned long long word;
    const unsigned barrier = shared_place(&word);
    const int z = 2 * blockIdx.x;
    if (threadIdx.x) return;
    start_barrier(barrier, 1);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %3, %4}], [%2];"
                 : : "r"(shared_place(tile)), "l"(&from), "r"(barrier), "n"(0), "r"(z) : "memory");
    unsigned long long state;
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
                     : "=r"(done) : "r"(barrier), "l"(state) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %2, %3}], [%1];"
                 : : "l"(&to), "r"(shared_place(tile)), "r"(0), "r"(z) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    if (Waits) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(0) : "memory");
}
