#pragma once

#include "sums/accumulate.cuh"
#include "sums/reduce.cuh"
#include "arrays/vector_load.cuh"

// Sums over rows of terms made of several arrays, read side by side. The grid is (rows, blocks per row), blocks are 1-D:
// a short row has one block, a long one is shared.

/// This block's contiguous share of `count` items of its row, as block_share.
__device__ inline Share row_share(long long count) {
    const long long width = static_cast<long long>(gridDim.y) * blockDim.x;
    const long long size = (count + width - 1) / width * blockDim.x;
    const long long begin = blockIdx.y * size;
    return {begin, begin + size < count ? begin + size : count};
}

/// f(x, slot) for the four elements of a vector of each array.
template <int ARRAYS, class F>
__device__ void visit_slots(const float4 (&v)[ARRAYS], F f) {
    float x[4][ARRAYS];
#pragma unroll
    for (int j = 0; j < ARRAYS; ++j) x[0][j] = v[j].x, x[1][j] = v[j].y, x[2][j] = v[j].z, x[3][j] = v[j].w;
#pragma unroll
    for (int slot = 0; slot < 4; ++slot) f(x[slot], slot);
}

/// f(x, slot) for the four elements of COUNT vectors blockDim.x apart; x[j] is the element of from[j].
template <int COUNT, int ARRAYS, class F>
__device__ void visit_vectors(const float* const (&from)[ARRAYS], long long at, F f) {
    float4 v[COUNT][ARRAYS];
#pragma unroll
    for (int k = 0; k < COUNT; ++k)
#pragma unroll
        for (int j = 0; j < ARRAYS; ++j) v[k][j] = load4_streamed(from[j] + 4 * (at + k * blockDim.x));
#pragma unroll
    for (int k = 0; k < COUNT; ++k) visit_slots(v[k], f);
}

/// Calls f(x, slot) for all i < n of this block's share of the row; x[j] is the i-th element of the j-th array, slot is
/// 0 to 3, for four independent accumulators.
template <int UNROLL, class F, class... Arrays>
__device__ void visit_row(long long n, F f, const Arrays*... arrays) {
    const Span span = aligned_span(n, arrays...);
    const float* const from[] = {arrays + span.head...};
    const Share share = row_share(span.vectors);
    long long at = share.begin + threadIdx.x;
    for (; at + (UNROLL - 1) * blockDim.x < share.end; at += UNROLL * blockDim.x) visit_vectors<UNROLL>(from, at, f);
#pragma unroll 1
    for (; at < share.end; at += blockDim.x) visit_vectors<1>(from, at, f);
    const Share rest = row_share(span.singles(n));
#pragma unroll 1
    for (long long i = rest.begin + threadIdx.x; i < rest.end; i += blockDim.x) {
        const float x[] = {arrays[span.single(i)]...};
        f(x, 0);
    }
}

/// The same where the row's blocks walk through it side by side, which is faster where all of them run at the same time;
/// after() follows every UNROLL vectors. UNROLL decides which elements a thread has, AT_ONCE how many it loads at a time.
template <int UNROLL, int AT_ONCE = UNROLL, class F, class After, class... Arrays>
__device__ void visit_row_settled(long long n, F f, After after, const Arrays*... arrays) {
    constexpr int ARRAYS = sizeof...(Arrays), STEPS = UNROLL / AT_ONCE;
    static_assert(UNROLL % AT_ONCE == 0);
    const Span span = aligned_span(n, arrays...);
    const float* const from[] = {arrays + span.head...};
    const auto load = [&](long long at, long long apart, auto there) {
        float4 v[AT_ONCE][ARRAYS];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k)
#pragma unroll
            for (int j = 0; j < ARRAYS; ++j)
                if (there(k)) v[k][j] = load4_streamed(from[j] + 4 * (at + k * apart));
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k)
            if (there(k)) visit_slots(v[k], f);
    };
    const auto tile = [&](long long at, long long apart, auto there) {
        if constexpr (STEPS == 1) {
            load(at, apart, there);
        } else {
#pragma unroll 1
            for (int step = 0; step < STEPS; ++step)
                load(at + step * AT_ONCE * apart, apart, [=](int k) { return there(step * AT_ONCE + k); });
        }
        after();
    };
    walk<UNROLL>(span.vectors, tile, blockIdx.y, gridDim.y);
    const Share rest = row_share(span.singles(n));
#pragma unroll 1
    for (long long i = rest.begin + threadIdx.x; i < rest.end; i += blockDim.x) {
        const float x[] = {arrays[span.single(i)]...};
        f(x, 0);
    }
}

/// The same with nothing to do after a tile.
template <int UNROLL, int AT_ONCE = UNROLL, class F, class... Arrays>
__device__ void visit_row_abreast(long long n, F f, const Arrays*... arrays) {
    visit_row_settled<UNROLL, AT_ONCE>(n, f, Nothing{}, arrays...);
}

/// N sums side by side: floats in a thread, four of each so that additions do not wait for one another.
template <int N>
struct PartialSums {
    float part[N][4] = {};

    __device__ void add(int sum, int slot, float term) { part[sum][slot] += term; }
    __device__ void total(double (&sum)[N]) const {
#pragma unroll
        for (int j = 0; j < N; ++j)
            sum[j] = (static_cast<double>(part[j][0]) + part[j][1]) + (static_cast<double>(part[j][2]) + part[j][3]);
    }
};

/// Adds up the sums of all threads of a row, in a fixed order: they are in thread 0 of one of its blocks (true there).
/// Where rows are shared, `by_block` has room for N values of every block, and `arrived` for a row each, as last_block.
template <int N>
__device__ bool row_sums(double (&sum)[N], double* by_block, unsigned int* arrived) {
#pragma unroll
    for (int j = 0; j < N; ++j) sum[j] = block_sum(sum[j]);
    if (gridDim.y == 1) return threadIdx.x == 0;
    double* const row = by_block + static_cast<long long>(blockIdx.x) * gridDim.y * N;
    if (threadIdx.x == 0)
        for (int j = 0; j < N; ++j) row[blockIdx.y * N + j] = sum[j];
    if (!last_block(arrived + blockIdx.x, gridDim.y)) return false;
#pragma unroll
    for (int j = 0; j < N; ++j) {
        sum[j] = 0.0;
        for (unsigned int i = threadIdx.x; i < gridDim.y; i += blockDim.x) sum[j] += __ldcg(row + i * N + j);
        sum[j] = block_sum(sum[j]);
    }
    return threadIdx.x == 0;
}
