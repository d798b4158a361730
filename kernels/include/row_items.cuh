#pragma once

#include "columns.cuh"

// A row, or a part of one, in the registers of a block: ITEMS floats per thread, WIDTH side by side.

/// By how many fewer blocks an SM holds from compute capability 10.0 on, where the same kernels need more registers.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int FEWER_BLOCKS = 1;
#else
constexpr int FEWER_BLOCKS = 0;
#endif

/// Where item k of this thread stands in the row.
template <int WIDTH>
__device__ int item_place(int k) {
    return (k / WIDTH * blockDim.x + threadIdx.x) * WIDTH + k % WIDTH;
}

// KEPT loads ask both caches to evict their lines last, as torch.compile's first reads do: reads stay in the L2 cache while
// writes drain. It was faster by this hint alone where a row's output costs little more than its read, in layer_norm and
// normalize; softmax did not gain.
#if defined(CPU_CUDA) || __CUDA_ARCH__ < 800

template <int WIDTH>
__device__ Group<WIDTH> load_kept(const float* p) {
    return load_group<WIDTH>(p);
}

#else

/// The kernel has not written *p before.
template <int WIDTH>
__device__ Group<WIDTH> load_kept(const float* p) {
    static_assert(WIDTH == 1 || WIDTH == 4);
    const unsigned long long at = __cvta_generic_to_global(p);
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    Group<WIDTH> v;
    if constexpr (WIDTH == 1)
        asm volatile("ld.global.L1::evict_last.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v.at[0]) : "l"(at), "l"(policy));
    else
        asm volatile("ld.global.L1::evict_last.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=f"(v.at[0]), "=f"(v.at[1]), "=f"(v.at[2]), "=f"(v.at[3])
                     : "l"(at), "l"(policy));
    return v;
}

#endif

/// Loads up to `count` floats of `from`; `outside` stands for what lies beyond.
template <int ITEMS, int WIDTH, bool KEPT = false>
__device__ void load_items(const float* from, int count, float outside, float (&item)[ITEMS]) {
#pragma unroll
    for (int k = 0; k < ITEMS; k += WIDTH) {
        Group<WIDTH> v;
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) v.at[w] = outside;
        const int place = item_place<WIDTH>(k);
        if (place < count) v = KEPT ? load_kept<WIDTH>(from + place) : load_group<WIDTH>(from + place);
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) item[k + w] = v.at[w];
    }
}

/// Calls f(place, group) for every group of WIDTH items below `count` and stores what it returns in the group's place.
template <int ITEMS, int WIDTH, class F>
__device__ void store_items(float* to, int count, const float (&item)[ITEMS], F f) {
#pragma unroll
    for (int k = 0; k < ITEMS; k += WIDTH) {
        const int place = item_place<WIDTH>(k);
        if (place >= count) continue;
        Group<WIDTH> v;
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) v.at[w] = item[k + w];
        store_group<WIDTH>(to + place, f(place, v));
    }
}
