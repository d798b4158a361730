#pragma once

#include "arrays/columns.cuh"

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

// KEPT loads are those of load4_kept, which layer_norm and normalize gain by; softmax did not.

/// Loads up to `count` floats of `from`; `outside` stands for what lies beyond.
template <int ITEMS, int WIDTH, bool KEPT = false>
__device__ void load_items(const float* from, int count, float outside, float (&item)[ITEMS]) {
#pragma unroll
    for (int k = 0; k < ITEMS; k += WIDTH) {
        Group<WIDTH> v;
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) v.at[w] = outside;
        const int place = item_place<WIDTH>(k);
        if (place < count) v = load_either<WIDTH, KEPT>(from + place);
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
