#pragma once

#include "attention.cuh"

// The attention of attention.cuh by warpgroup instructions, for compute capability 9.0 alone (on the CPU there is
// nothing to call). The outputs of the last keys are multiplied while the exponentials of the next are taken.

template <class T>
__device__ void attend_by_warpgroups(const typename T::Element::Memory* q, const typename T::Element::Memory* k,
                                     const typename T::Element::Memory* v, const float* mask,
                                     typename T::Element::Out* o, Heads heads, float scale, void* shared);

/// By warpgroups or by warps, as T says.
template <class T>
__device__ void attend_as(const typename T::Element::Memory* q, const typename T::Element::Memory* k,
                          const typename T::Element::Memory* v, const float* mask, typename T::Element::Out* o,
                          Heads heads, float scale, void* shared) {
    if constexpr (T::BY_WARPGROUPS) attend_by_warpgroups<T>(q, k, v, mask, o, heads, scale, shared);
    else attend<T>(q, k, v, mask, o, heads, scale, static_cast<unsigned short*>(shared));
}

#ifndef CPU_CUDA

/// D is the width of a head, rounded up to 64 or 128 with zeros; a warpgroup has 64 queries.
template <int D_, int GROUPS, bool CAUSAL_, bool MASKED_, class E = HalfHead>
struct AttentionWarpgroups {
    using Element = E;
    static constexpr int D = D_, ROWS = 1, KEYS = 128, WIDTH = 8, THREADS = 128 * GROUPS, QUERIES = 64 * GROUPS;
    static constexpr bool CAUSAL = CAUSAL_, MASKED = MASKED_, KEEPS_QUERIES = false, BY_WARPGROUPS = true;
    static constexpr int PITCH = D, RESIDENT = 1;
    static constexpr unsigned int ROW = 128, TILE = KEYS * D * 2, HALF_TILE = KEYS * ROW;  // rows of 64 columns
};

/// LINES lines of a head, in columns of 64, in the order of operand_at; what lies outside is zero. 256 threads copy.
template <class T, int LINES>
__device__ void copy_swizzled(unsigned int shared, const typename T::Element::Memory* from, long long stride, int lines,
                              int width) {
    constexpr int PIECES = T::D / 8, APART = 256 / PIECES;
    static_assert(APART % 8 == 0 && LINES % APART == 0);
    if (threadIdx.x >= 256) return;
    const int row = threadIdx.x / PIECES, piece = threadIdx.x % PIECES;
    const unsigned int to = shared + piece / 8 * LINES * T::ROW + row * T::ROW + (piece % 8 ^ row % 8) * 16;
    const auto* source = from + row * stride + piece * 8;
    const bool inside = piece * 8 < width;
#pragma unroll
    for (int i = 0; i < LINES / APART; ++i, source += APART * stride)
        copy_or_zero(to + i * APART * T::ROW, source, inside && row + i * APART < lines);
}

/// One batch: all scores of the warpgroup's queries and a tile of keys.
template <class T>
__device__ void multiply_keys(float (&score)[16][4], unsigned int queries, unsigned int keys) {
    const unsigned long long a = operand_at(queries + threadIdx.x / 128 * 64 * T::ROW, 16), b = operand_at(keys, 16);
    multiply_scores<T::Element::KIND, true>(score, a, b);
#pragma unroll
    for (unsigned int d = 16; d < T::D; d += 16)
        multiply_scores<T::Element::KIND, false>(score, moved(a, d / 64 * T::QUERIES * T::ROW + d % 64 * 2),
                               moved(b, d / 64 * T::HALF_TILE + d % 64 * 2));
    close_batch();
}

/// One batch: what the weights of a tile of keys add to the outputs.
template <class T>
__device__ void multiply_values(float (&out)[T::D / 8][4], const unsigned int (&weight)[T::KEYS / 16][4],
                                unsigned int values) {
    const unsigned long long b = operand_at(values, T::HALF_TILE);
#pragma unroll
    for (unsigned int k = 0; k < T::KEYS / 16; ++k)
        multiply_weighted<T::Element::KIND>(out, weight[k], moved(b, k * 16 * T::ROW));
    close_batch();
}

/// As `attend`; `shared` has room for a tile of queries, two of keys, two of values, and 1 KiB to whose multiples they
/// are aligned.
template <class T>
__device__ void attend_by_warpgroups(const typename T::Element::Memory* q, const typename T::Element::Memory* k,
                                     const typename T::Element::Memory* v, const float* mask,
                                     typename T::Element::Out* o, Heads heads, float scale, void* shared) {
    const unsigned int own = (shared_address(shared) + 1023) / 1024 * 1024, keys = own + T::QUERIES * T::D * 2;
    const unsigned int values = keys + 2 * T::TILE;
    const int tiles = (heads.length + T::QUERIES - 1) / T::QUERIES;
    const int first = (tiles - 1 - static_cast<int>(blockIdx.x) % tiles) * T::QUERIES;
    const long long begin = heads.begin(blockIdx.x / tiles);
    const int end = T::CAUSAL ? min(heads.length, first + T::QUERIES) : heads.length;
    const int blocks = (end + T::KEYS - 1) / T::KEYS;
    const auto copy = [&](const typename T::Element::Memory* from, int block, unsigned int ring) {
        if (block < blocks)
            copy_swizzled<T, T::KEYS>(ring + block % 2 * T::TILE, from + begin + block * T::KEYS * heads.row, heads.row,
                                      heads.length - block * T::KEYS, heads.width);
    };
    const float base2 = 1.44269504f * scale, after = T::MASKED ? 1.0f : base2;
    unsigned int weight[T::KEYS / 16][4];
    Queries<T> queries(nullptr, first);
    const auto weigh = [&](int block) {
        queries.mask_scores(mask, block * T::KEYS, heads.length, base2);
        queries.weigh(after);
    };
    const auto take_weights = [&] {
#pragma unroll
        for (int at = 0; at < T::KEYS / 16; ++at) queries.weigh_keys(weight[at], 0, at);
    };
    copy_swizzled<T, T::QUERIES>(own, q + begin + first * heads.row, heads.row, heads.length - first, heads.width);
    copy(k, 0, keys);
    __pipeline_commit();
    copy(k, 1, keys);
    copy(v, 0, values);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    show_to_warpgroups();
    __syncthreads();
    const auto next_round = [&] {
        wait_for_batches<0>(queries.out[0]);
        queries.fade_outputs();
        take_weights();
        __pipeline_wait_prior(0);
        show_to_warpgroups();
        __syncthreads();
        open_batch();
    };
    open_batch();
    multiply_keys<T>(queries.score[0], own, keys);
    wait_for_batches<0>(queries.score[0]);
    weigh(0);
    int block = 0;
#pragma unroll 1
    for (; block + 1 < blocks; ++block) {
        next_round();
        multiply_keys<T>(queries.score[0], own, keys + (block + 1) % 2 * T::TILE);
        multiply_values<T>(queries.out[0], weight, values + block % 2 * T::TILE);
        copy(k, block + 2, keys);
        copy(v, block + 1, values);
        __pipeline_commit();
        wait_for_batches<1>(queries.score[0]);
        weigh(block + 1);  // while the values are multiplied; the next round waits for them, beyond the loop's branch
    }
    next_round();
    multiply_values<T>(queries.out[0], weight, values + block % 2 * T::TILE);
    wait_for_batches<0>(queries.out[0]);
    queries.store(o + begin, heads);
}

#endif
