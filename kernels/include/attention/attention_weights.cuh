#pragma once

#include "attention/attention.cuh"

// The attention of attention.cuh that gives its weights too, [batch, heads, length, length]: they are known when all
// keys have passed, so the keys pass twice.

/// Scores become weights: exp2(scale score - shift) / sum, zeros where nothing is open. `sum` then counts for one.
template <class T>
__device__ void normalise(Queries<T>& queries, float scale, const float (&factor)[T::ROWS][2]) {
#pragma unroll
    for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
        for (int j = 0; j < Queries<T>::BLOCKS; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float& score = queries.score[i][j][e];
                const float shift = scale * finite_max(queries.max[i][e / 2]);
                score = factor[i][e / 2] * exp2_fast(fmaf(scale, score, -shift));
            }
}

/// One over the rows' sums, 0 where nothing is open; the sums become 1, as those of weights are.
template <class T>
__device__ void take_factors(Queries<T>& queries, float (&factor)[T::ROWS][2]) {
#pragma unroll
    for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float total = queries.sum[i][half];
            total += shuffle_xor(total, 1);
            total += shuffle_xor(total, 2);
            factor[i][half] = total == 0.0f ? 0.0f : 1.0f / total;
            queries.sum[i][half] = warp_lane() % 4 == 0 ? 1.0f : 0.0f;
        }
}

/// The weights of a block of keys, as halves: four lanes exchange theirs for 8 bytes each of 16 columns of a row.
template <class T>
__device__ void store_weights(const Queries<T>& queries, __half* weights, int from, int length) {
    const int quad = warp_lane() / 4 * 4, lane = warp_lane() % 4, source = quad + 2 * lane % 4;
#pragma unroll
    for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
        for (int j = 0; j < 2 * Queries<T>::BLOCKS; j += 2) {
            const int half = j / Queries<T>::BLOCKS, block = j % Queries<T>::BLOCKS;
            const float* const left = queries.score[i][block] + 2 * half;
            const float* const right = queries.score[i][block + 1] + 2 * half;
            const unsigned int a = HalfHead::pair(left[0], left[1]), b = HalfHead::pair(right[0], right[1]);
            const unsigned int low_a = __shfl_sync(~0u, a, source), low_b = __shfl_sync(~0u, b, source);
            const unsigned int high_a = __shfl_sync(~0u, a, source + 1), high_b = __shfl_sync(~0u, b, source + 1);
            const unsigned int low = lane < 2 ? low_a : low_b, high = lane < 2 ? high_a : high_b;
            const int row = queries.row_at(i, 2 * half), col = from + 8 * block + 4 * lane;
            if (row >= length || col >= length) continue;
            __half* const to = weights + static_cast<long long>(row) * length + col;
            if (length % 4 == 0) {
                *reinterpret_cast<uint2*>(to) = make_uint2(low, high);
            } else {
#pragma unroll
                for (int at = 0; at < 4; ++at)
                    if (col + at < length)
                        to[at] = __ushort_as_half(static_cast<unsigned short>((at < 2 ? low : high) >> at % 2 * 16));
            }
        }
}

/// `shared` as for `attend`.
template <class T>
__device__ void attend_with_weights(const __half* q, const __half* k, const __half* v, const float* mask, __half* o,
                                    __half* weights, Heads heads, float scale, unsigned short* shared) {
    const HeadTile<T> tile(k, v, heads);
    const float base2 = 1.44269504f * scale, after = T::MASKED ? 1.0f : base2;
    unsigned short* const stages = shared + T::QUERIES * T::PITCH;
    Queries<T> queries(shared, tile.first);
    const auto meet = [&](int from, const unsigned short* keys) {
        queries.meet_keys(keys);
        queries.mask_scores(mask, from, heads.length, base2);
    };
    tile.copy_queries(shared, q);
    tile.walk(tile.end(), stages, [&](int from, const unsigned short* keys) {
        if (from == 0) queries.keep();
        meet(from, keys);
        queries.weigh(after);
    });
    __syncthreads();
    float factor[T::ROWS][2];
    take_factors(queries, factor);
    const long long square = static_cast<long long>(heads.length) * heads.length;
    tile.walk(heads.length, stages, [&](int from, const unsigned short* keys) {
        meet(from, keys);
        normalise(queries, after, factor);
        store_weights(queries, weights + tile.which * square, from, heads.length);
        queries.meet_values(keys + T::STAGE);
    });
    queries.store(o + tile.begin, heads);
}
