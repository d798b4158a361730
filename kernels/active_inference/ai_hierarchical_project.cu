#include "arrays/map_arrays.cuh"

/// 16 bytes of the level, repeated without end, from index `from` on; READ where those of the level are packets too.
template <bool READ, class T>
__device__ Packet<T> repeated(const T* a, long long from, long long length) {
    if constexpr (READ) return Packet<T>::load(a + from, 0);
    Packet<T> result;
#pragma unroll
    for (int k = 0; k < Packet<T>::WIDTH; ++k) {
        result.at[k] = a[from];
        from = from + 1 == length ? 0 : from + 1;
    }
    return result;
}

/// from mod length, by 32 bits where they are enough.
__device__ inline long long remainder(long long from, long long length) {
    if ((from | length) >> 32 != 0) return from % length;
    return static_cast<unsigned int>(from) % static_cast<unsigned int>(length);
}

constexpr int EACH = 4;  // packets of a thread

// out[i] = a[i mod length]: a block's packets lie side by side, EACH a thread, and only the first of each thread divides.
template <class T>
__global__ void __launch_bounds__(256) ai_hierarchical_project(const T* a, T* out, long long length, long long n) {
    constexpr int WIDTH = Packet<T>::WIDTH;
    const long long whole = packets(n, out);
    const long long begin = static_cast<long long>(blockIdx.x) * EACH * blockDim.x + threadIdx.x;
    const long long stride = remainder(static_cast<long long>(blockDim.x) * WIDTH, length);
    const auto project = [&](auto load) {
        long long from = remainder(begin * WIDTH, length);
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const long long at = begin + k * blockDim.x;
            if (at < whole) load(from).store(out, at);
            from += stride;
            if (from >= length) from -= length;
        }
    };
    if (length % WIDTH == 0 && packets(length, a) > 0)
        project([=](long long from) { return repeated<true>(a, from, length); });
    else
        project([=](long long from) { return repeated<false>(a, from, length); });
#pragma unroll 1
    for (long long i = whole * WIDTH + grid_thread(); i < n; i += grid_threads()) out[i] = a[i % length];
}
