#pragma once

#include "attention/attention.cuh"

// The online softmax of warpgroups, whose queries are 16 a warp: what Queries::weigh does, both halves of the rows at
// once and with two sums each, because a chain of dependent additions would keep the warp waiting.

/// The highest score of each of the lane's two rows, among these and what came before; `fade` as in Queries.
/// Exponentials are to be 2^(scale score - shift), 2^-above at most.
template <class T>
__device__ inline void find_highest(Queries<T>& queries, float scale, float above, float (&shift)[2]) {
    float highest[2][2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        highest[half][0] = fmaxf(queries.max[0][half], queries.score[0][0][2 * half]);
        highest[half][1] = queries.score[0][0][2 * half + 1];
    }
#pragma unroll
    for (int i = 4; i < T::KEYS / 2; ++i)
        highest[i / 2 % 2][i % 2] = fmaxf(highest[i / 2 % 2][i % 2], queries.score[0][i / 4][i % 4]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float top = fmaxf(highest[half][0], highest[half][1]);
        top = fmaxf(top, shuffle_xor(top, 1));
        top = fmaxf(top, shuffle_xor(top, 2));
        shift[half] = fmaf(scale, finite_max(top), above);
        queries.fade[0][half] = exp2_fast(fmaf(scale, queries.max[0][half], above - shift[half]));
        queries.max[0][half] = top;
    }
}

/// Scores become exponentials; `added` is what they sum up to.
template <class T>
__device__ inline void take_exponentials(Queries<T>& queries, float scale, const float (&shift)[2], float (&added)[2]) {
    float sum[2][2] = {};
#pragma unroll
    for (int i = 0; i < T::KEYS / 2; ++i) {
        float& score = queries.score[0][i / 4][i % 4];
        score = exp2_fast(fmaf(scale, score, -shift[i / 2 % 2]));
        sum[i / 2 % 2][i % 2] += score;
    }
    added[0] = sum[0][0] + sum[0][1], added[1] = sum[1][0] + sum[1][1];
}

/// As Queries::weigh.
template <class T>
__device__ inline void weigh_rows(Queries<T>& queries, float scale) {
    float shift[2], added[2];
    find_highest(queries, scale, 0.0f, shift);
    take_exponentials(queries, scale, shift, added);
#pragma unroll
    for (int half = 0; half < 2; ++half)
        queries.sum[0][half] = fmaf(queries.sum[0][half], queries.fade[0][half], added[half]);
}
