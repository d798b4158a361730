#pragma once

#include "sums/moments.cuh"
#include "layers/row_items.cuh"

// Rows normalised by their own mean and biased variance, then scaled, shifted and activated.

struct TwoSums {
    float first, second;

    __device__ TwoSums operator+(TwoSums other) const { return {first + other.first, second + other.second}; }
};

__device__ inline TwoSums shuffle_xor(TwoSums value, int mask) {
    return {shuffle_xor(value.first, mask), shuffle_xor(value.second, mask)};
}

template <int WIDTH, class Then>
struct Finish {
    const float* gamma;
    const float* beta;
    float low, factor;

    /// `v` holds deviations from a rounded mean, `low` what the rounding took off.
    __device__ Group<WIDTH> operator()(int place, Group<WIDTH> v) const {
        const Group<WIDTH> scale = load_group<WIDTH>(gamma + place), shift = load_group<WIDTH>(beta + place);
#pragma unroll
        for (int w = 0; w < WIDTH; ++w)
            v.at[w] = Then{}(fmaf((v.at[w] - low) * factor, scale.at[w], shift.at[w]));
        return v;
    }
};

/// One block per row, which stays in registers: read once. The mean of the deviations from the rounded mean corrects it,
/// and the variance beside it. KEPT is as in load_items.
template <int ITEMS, int WIDTH, class Then, bool KEPT = false>
__device__ void layer_norm_row(const float* x, const float* gamma, const float* beta, float* y, int cols, float eps) {
    const long long begin = static_cast<long long>(blockIdx.x) * cols;
    float item[ITEMS];
    load_items<ITEMS, WIDTH, KEPT>(x + begin, cols, 0.0f, item);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) sum += item[k];
    const float mean = block_sum(sum) / cols;
    TwoSums off = {0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        item[k] -= mean;
        const float d = item_place<WIDTH>(k) < cols ? item[k] : 0.0f;
        off = {off.first + d, fmaf(d, d, off.second)};
    }
    off = block_reduce(off, Sum{}, TwoSums{0.0f, 0.0f});
    const float low = off.first / cols;
    const float variance = fmaf(-low, low, off.second / cols);
    store_items<ITEMS, WIDTH>(y + begin, cols, item,
                              Finish<WIDTH, Then>{gamma, beta, low, 1.0f / sqrtf(variance + eps)});
}

/// One block per row of any length, which is read twice.
template <class Then>
__device__ void layer_norm_long_row(const float* x, const float* gamma, const float* beta, float* y, int cols,
                                    float eps) {
    const long long begin = static_cast<long long>(blockIdx.x) * cols;
    PivotSums own;
#pragma unroll 8
    for (int c = threadIdx.x; c < cols; c += blockDim.x) own.add(x[begin + c]);
    const Moments row = block_moments(own.moments());
    const float mean = static_cast<float>(row.mean);
    const float variance = static_cast<float>(row.squares / row.count);
    const Finish<1, Then> finish = {gamma, beta, static_cast<float>(row.mean - mean), 1.0f / sqrtf(variance + eps)};
#pragma unroll 4
    for (int c = threadIdx.x; c < cols; c += blockDim.x) y[begin + c] = finish(c, {{x[begin + c] - mean}}).at[0];
}
