#pragma once

#include "sums/reduce.cuh"
#include "arrays/vector_load.cuh"

// Element-wise maps and sums over any number of arrays of float or double, 16 bytes an access. Arrays that do not begin
// on a 16-byte boundary go singly.

/// 16 bytes of T.
template <class T>
struct Packet {
    static constexpr int WIDTH = 16 / sizeof(T);
    T at[WIDTH];

    __device__ static Packet load(const T* from, long long index) {
        const float4 raw = reinterpret_cast<const float4*>(from)[index];
        return *reinterpret_cast<const Packet*>(&raw);
    }
    /// For what is read once.
    __device__ static Packet load_streamed(const T* from, long long index) {
        const float4 raw = __ldcs(reinterpret_cast<const float4*>(from) + index);
        return *reinterpret_cast<const Packet*>(&raw);
    }
    __device__ void store(T* to, long long index) const {
        reinterpret_cast<float4*>(to)[index] = *reinterpret_cast<const float4*>(this);
    }
};

/// Whether every array begins on a 16-byte boundary.
template <class... Arrays>
__device__ bool all_aligned(const Arrays*... arrays) {
    return ((reinterpret_cast<unsigned long long>(arrays) | ...) & 15) == 0;
}

/// How many whole packets n elements make; none where an array begins off a boundary.
template <class T, class... Others>
__device__ long long packets(long long n, const T* first, const Others*... others) {
    return all_aligned(first, others...) ? n / Packet<T>::WIDTH : 0;
}

/// out[i] = f(in[i]...) for i < n, by a 1-D grid of any size; out may be one of the others.
template <class T, class F, class... Ins>
__device__ void map_arrays(T* out, long long n, F f, const Ins*... in) {
    constexpr int WIDTH = Packet<T>::WIDTH;
    const auto one = [&](long long at, auto... v) {
        Packet<T> result;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) result.at[k] = f(v.at[k]...);
        result.store(out, at);
    };
    const bool aligned = all_aligned(out, in...);
    long long at = aligned ? grid_thread() : n;  // the first loads come before any other code, which short kernels notice
    if (WIDTH * at + WIDTH <= n) {
        one(at, Packet<T>::load(in, at)...);
        at += grid_threads();
        if (WIDTH * at >= n) return;
#pragma unroll 1
        for (; WIDTH * at + WIDTH <= n; at += grid_threads()) one(at, Packet<T>::load(in, at)...);
    }
#pragma unroll 1
    for (long long i = WIDTH * at; i < n; ++i) out[i] = f(in[i]...);  // the thread whose packet the end cuts off
    if (aligned) return;
#pragma unroll 1
    for (long long i = grid_thread(); i < n; i += grid_threads()) out[i] = f(in[i]...);
}

/// Blocks of 512 threads that an SM is to hold at once where they add up numbers T: all of its threads for floats; 0 leaves
/// that to the compiler.
template <class T>
constexpr int RESIDENT = sizeof(T) == 4 ? 4 : 0;

/// The sum of f(in[i]...) over this thread's i < n of a 1-D grid: in T within a tile, four side by side, so that additions
/// do not wait for one another, and in double from tile to tile. A thread has at least four loads on their way, of few
/// arrays by several packets of each. Doubles are added in each block's share, for tiles need more registers.
template <class T, class F, class... Ins>
__device__ double thread_sum(long long n, F f, const Ins*... in) {
    constexpr int WIDTH = Packet<T>::WIDTH, ARRAYS = sizeof...(Ins), LOADS = ARRAYS >= 4 ? 1 : ARRAYS >= 2 ? 2 : 4;
    constexpr int BATCH = LOADS * WIDTH < 4 ? 4 / WIDTH : LOADS;
    const long long whole = packets(n, in...);
    T part[4] = {};
    const auto add = [&](int packet, auto... v) {
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) part[(packet * WIDTH + k) % 4] += f(v.at[k]...);
    };
    if constexpr (sizeof(T) == 8) {
        const auto many = [&](long long at) {
#pragma unroll
            for (int u = 0; u < BATCH; ++u) add(u, Packet<T>::load_streamed(in, at + u * blockDim.x)...);
        };
        walk_share<BATCH>(block_share(whole), many, [&](long long at) { add(0, Packet<T>::load_streamed(in, at)...); });
#pragma unroll 1
        for (long long i = WIDTH * whole + grid_thread(); i < n; i += grid_threads()) part[0] += f(in[i]...);
        return (part[0] + part[1]) + (part[2] + part[3]);
    } else {
        double sum = 0.0;
        const auto tile = [&](long long at, long long apart, auto there) {
#pragma unroll
            for (T& own : part) own = 0;
#pragma unroll
            for (int u = 0; u < BATCH; ++u)
                if (there(u)) add(u, Packet<T>::load_streamed(in, at + u * apart)...);
            sum += (part[0] + part[1]) + (part[2] + part[3]);
        };
        walk<BATCH>(whole, tile);
#pragma unroll 1
        for (long long i = WIDTH * whole + grid_thread(); i < n; i += grid_threads()) sum += f(in[i]...);
        return sum;
    }
}

/// The sums over a 1-D grid, as grid_sum: in thread 0 of one block only (true there), in an order fixed by the grid.
/// `by_block` has room for COUNT values of each block.
template <int COUNT>
__device__ bool grid_sums(double (&sum)[COUNT], double* by_block, unsigned int* arrived) {
#pragma unroll
    for (int j = 0; j < COUNT; ++j) sum[j] = block_sum(sum[j]);
    if (gridDim.x == 1) return threadIdx.x == 0;
    if (threadIdx.x == 0)
        for (int j = 0; j < COUNT; ++j) by_block[blockIdx.x * COUNT + j] = sum[j];
    if (!last_block(arrived)) return false;
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
        sum[j] = 0.0;
        for (unsigned int i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum[j] += __ldcg(by_block + i * COUNT + j);
        sum[j] = block_sum(sum[j]);
    }
    return threadIdx.x == 0;
}
