#include "map_arrays.cuh"

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

// out[i] = a[i mod length]: a block's packets lie side by side, and only the first of each thread divides.
template <class T>
__global__ void __launch_bounds__(256) ai_hierarchical_project(const T* a, T* out, long long length, long long n) {
    constexpr int WIDTH = Packet<T>::WIDTH;
    const long long whole = packets(n, out);
    const Share share = block_share(whole);
    const long long stride = static_cast<long long>(blockDim.x) * WIDTH % length;
    const auto project = [&](auto load) {
        long long from = (share.begin + threadIdx.x) * WIDTH % length;
#pragma unroll 4
        for (long long at = share.begin + threadIdx.x; at < share.end; at += blockDim.x) {
            load(from).store(out, at);
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
