#pragma once

#include "attention/attention.cuh"

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

/// D is the width of a head, rounded up to 64 or 128 with zeros; a warpgroup has 64 queries. RING tiles of keys and of
/// values have room.
template <int D_, int GROUPS, int RING_, bool CAUSAL_, bool MASKED_, class E = HalfHead>
struct AttentionWarpgroups {
    using Element = E;
    static constexpr int RING = RING_;
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

/// The tiles that pass a block's queries, in groups of the keys for the next scores and the values for the last ones. A
/// ring of 3 lets one warpgroup run ahead of the others, so that it multiplies while they take exponentials: a group's
/// copies are started when all that is older than the group before is read. With 2 they meet at every group.
template <class T>
struct TileRing {
    using Memory = typename T::Element::Memory;
    unsigned int keys, values, barriers;
    int blocks, length, width;
    long long row;
    const Memory *k, *v;

    /// The ring begins at `shared`; k and v are of the block's head.
    __device__ void start(unsigned int shared, const Heads& heads, int blocks_) {
        keys = shared, values = keys + T::RING * T::TILE, barriers = values + T::RING * T::TILE;
        blocks = blocks_, length = heads.length, width = heads.width, row = heads.row;
        if (T::RING > 2 && threadIdx.x == 0)
            for (int slot = 0; slot < T::RING; ++slot) start_barrier(barriers + 8 * slot, T::THREADS);
        if (T::RING > 2) __syncthreads();
    }

    __device__ static int slot(int group) { return (group + T::RING) % T::RING; }
    __device__ unsigned int keys_at(int block) const { return keys + slot(block - 1) * T::TILE; }
    __device__ unsigned int values_at(int block) const { return values + slot(block) * T::TILE; }

    __device__ void copy_tile(unsigned int to, const Memory* from, int block) const {
        copy_swizzled<T, T::KEYS>(to, from + block * T::KEYS * row, row, length - block * T::KEYS, width);
    }

    __device__ void copy_keys(int block) const {
        if (block < blocks) copy_tile(keys_at(block), k, block);
    }

    /// Keys of block `group` + 1 and values of block `group`.
    __device__ void copy(int group) const {
        copy_keys(group + 1);
        if (group < blocks) copy_tile(values_at(group), v, group);
        if (T::RING > 2) arrive_when_copied(barriers + 8 * slot(group));
        else __pipeline_commit();
    }

    __device__ void await(int group) const {
        if (T::RING > 2) await_phase(barriers + 8 * slot(group), group / T::RING & 1);
        else __pipeline_wait_prior(0);
        show_to_warpgroups();
        if (T::RING == 2) __syncthreads();
    }
};

/// As `attend`; `shared` has room for a tile of queries, a ring of keys and of values, 64 bytes, and 1 KiB to whose
/// multiples they are aligned.
template <class T>
__device__ void attend_by_warpgroups(const typename T::Element::Memory* q, const typename T::Element::Memory* k,
                                     const typename T::Element::Memory* v, const float* mask,
                                     typename T::Element::Out* o, Heads heads, float scale, void* shared) {
    const unsigned int own = (shared_address(shared) + 1023) / 1024 * 1024;
    const int tiles = (heads.length + T::QUERIES - 1) / T::QUERIES;
    const int first = (tiles - 1 - static_cast<int>(blockIdx.x) % tiles) * T::QUERIES;
    const long long begin = heads.begin(blockIdx.x / tiles);
    const int end = T::CAUSAL ? min(heads.length, first + T::QUERIES) : heads.length;
    const int blocks = (end + T::KEYS - 1) / T::KEYS;
    const float base2 = 1.44269504f * scale, after = T::MASKED ? 1.0f : base2;
    unsigned int weight[T::KEYS / 16][4];
    Queries<T> queries(nullptr, first);
    TileRing<T> ring;
    ring.k = k + begin, ring.v = v + begin;
    ring.start(own + T::QUERIES * T::D * 2, heads, blocks);
    const auto weigh = [&](int block) {
        queries.mask_scores(mask, block * T::KEYS, heads.length, base2);
        queries.weigh(after);
    };
    const auto next_round = [&](int block) {
        wait_for_batches<0>(queries.out[0]);
        queries.fade_outputs();
#pragma unroll
        for (int at = 0; at < T::KEYS / 16; ++at) queries.weigh_keys(weight[at], 0, at);
        ring.await(block);
        open_batch();
    };
    copy_swizzled<T, T::QUERIES>(own, q + begin + first * heads.row, heads.row, heads.length - first, heads.width);
    ring.copy_keys(0);
    __pipeline_commit();
    ring.copy(0);
    __pipeline_wait_prior(T::RING > 2 ? 0 : 1);
    show_to_warpgroups();
    __syncthreads();
    open_batch();
    multiply_keys<T>(queries.score[0], own, ring.keys_at(0));
    wait_for_batches<0>(queries.score[0]);
    weigh(0);
    int block = 0;
#pragma unroll 1
    for (; block + 1 < blocks; ++block) {
        next_round(block);
        multiply_keys<T>(queries.score[0], own, ring.keys_at(block + 1));
        multiply_values<T>(queries.out[0], weight, ring.values_at(block));
        ring.copy(block + 1);
        wait_for_batches<1>(queries.score[0]);
        weigh(block + 1);  // while the values are multiplied; the next round waits for them, beyond the loop's branch
    }
    next_round(block);
    multiply_values<T>(queries.out[0], weight, ring.values_at(block));
    wait_for_batches<0>(queries.out[0]);
    queries.store(o + begin, heads);
}

#endif
