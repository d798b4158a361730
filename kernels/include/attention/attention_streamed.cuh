#pragma once

#include "attention/attention_warpgroups.cuh"
#include "attention/attention_weigh.cuh"
#include "tensor_cores/tensor_map.cuh"

// The attention of attention_warpgroups.cuh for heads of 64 or 128 columns whose keys are whole tiles, without a mask:
// a separate warp copies by tensor maps, and the warpgroups that multiply take turns, so that one multiplies while the
// others take exponentials.
//
// The exponentials' reference point need not be the highest score, it must only keep them in range. So it is that of a
// query's first tile of keys, and later tiles are searched for no maximum and fade nothing: issue slots, of which
// that takes a third, limit the kernel. Sums that show that a weight may have left the range make the block repeat its
// queries, then with the running maximum.

template <class T>
__device__ void attend_streamed(const TensorMap& q, const TensorMap& k, const TensorMap& v, typename T::Element::Out* o,
                                Heads heads, float scale, void* shared);

#ifndef CPU_CUDA

/// GROUPS warpgroups multiply for 64 queries each; RING tiles of keys and of values have room.
template <int D_, int GROUPS_, int RING_, bool CAUSAL_, class E = HalfHead>
struct AttentionStreamed {
    using Element = E;
    static constexpr int D = D_, GROUPS = GROUPS_, RING = RING_, KEYS = 128, THREADS = 128 * (GROUPS + 1);
    static constexpr int ROWS = 1, WIDTH = 8, QUERIES = 64 * GROUPS, PITCH = D, RESIDENT = 1;
    static constexpr bool CAUSAL = CAUSAL_, MASKED = false, KEEPS_QUERIES = false;
    static constexpr unsigned int ROW = 128, TILE = KEYS * D * 2, HALF_TILE = KEYS * ROW;
    static constexpr int MANY_REGISTERS = GROUPS == 3 ? 160 : 240, FEW_REGISTERS = GROUPS == 3 ? 32 : 24;
    // Of the first tile's exponentials 2^-6 is the highest: room for sums of later ones below what their weights hold.
    static constexpr float ABOVE = 6.0f, MOST = E::KIND == 0 ? 6e4f : 1e37f;
};

/// What lies in shared memory, and the place in the ring. A barrier each says that queries, keys or values are there,
/// that keys or values have been read, and that all queries' sums are known.
template <class T>
struct KeyStream {
    static constexpr unsigned int NEXT = 8 * T::RING, FREE = 2 * NEXT;
    unsigned int queries, keys, values, key_full, value_full, queries_full, verdict, failed;
    int slot = 0;
    unsigned int parity = 0;

    __device__ explicit KeyStream(void* shared) {
        queries = (shared_address(shared) + 1023) / 1024 * 1024;
        keys = queries + T::QUERIES * T::D * 2;
        values = keys + T::RING * T::TILE;
        key_full = values + T::RING * T::TILE;
        value_full = key_full + NEXT;
        queries_full = key_full + 2 * FREE;
        verdict = queries_full + 8;
        failed = verdict + 8;
    }

    __device__ void start() const {
        for (unsigned int i = 0; i < FREE; i += 8) {
            start_barrier(key_full + i, 1);
            start_barrier(key_full + FREE + i, 4 * T::GROUPS);
        }
        start_barrier(queries_full, 1);
        start_barrier(verdict, 4 * T::GROUPS);
        asm volatile("st.shared.u32 [%0], 0;" : : "r"(failed) : "memory");
        show_barriers();
    }

    __device__ void advance() {
        if (++slot == T::RING) slot = 0, parity ^= 1;
    }

    /// This warp has read the tile of that barrier.
    __device__ void release(unsigned int full, int at) const {
        if (warp_lane() == 0) arrive_at(full + FREE + 8 * at);
    }

    /// This warp's verdict, then whether any warp's is bad.
    __device__ void judge(bool bad) const {
        if (__any_sync(~0u, bad) && warp_lane() == 0) asm volatile("st.shared.u32 [%0], 1;" : : "r"(failed) : "memory");
        __syncwarp();
        if (warp_lane() == 0) arrive_at(verdict);
    }
    __device__ bool has_failed() const {
        unsigned int word;
        await_phase(verdict, 0);
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(failed) : "memory");
        return __shfl_sync(~0u, word, 0) != 0;
    }
};

/// A block's queries: `first` of head `which`, and how many tiles of keys are open to them. Causal ones begin with a
/// head's longest; of others those come last that leave warpgroups idle.
template <class T>
struct StreamedQueries {
    int which, first, blocks;

    __device__ StreamedQueries(const Heads& heads) {
        const int whole = heads.length / T::QUERIES, tiles = (heads.length + T::QUERIES - 1) / T::QUERIES;
        const int index = blockIdx.x, all = gridDim.x / tiles * whole;
        which = T::CAUSAL ? index / tiles : index < all ? index / whole : index - all;
        first = (T::CAUSAL ? tiles - 1 - index % tiles : index < all ? index % whole : whole) * T::QUERIES;
        const int end = T::CAUSAL ? min(heads.length, first + T::QUERIES) : heads.length;
        blocks = (end + T::KEYS - 1) / T::KEYS;
    }
};

/// LINES lines of a head in columns of 64, from `line` of the whole matrix on.
template <class T, int LINES>
__device__ inline void load_lines_of(unsigned int shared, const TensorMap& map, int col, int line,
                                     unsigned int barrier) {
    arrive_and_expect(barrier, LINES * T::D * 2);
#pragma unroll
    for (int i = 0; i < T::D / 64; ++i) load_box(shared + i * LINES * T::ROW, map, col + 64 * i, line, barrier);
}

/// The copying warp: the block's queries, then all tiles of keys and of values, and once more where that failed.
template <class T>
__device__ void copy_stream(KeyStream<T> stream, const TensorMap& q, const TensorMap& k, const TensorMap& v, int col,
                            int line, const StreamedQueries<T>& tile) {
    if (warp_lane() == 0)
        load_lines_of<T, T::QUERIES>(stream.queries, q, col, line + tile.first, stream.queries_full);
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {
        if (warp_lane() == 0)
#pragma unroll 1
            for (int block = 0; block < tile.blocks; ++block, stream.advance()) {
                const unsigned int to = stream.slot * T::TILE, key = stream.key_full + 8 * stream.slot;
                const unsigned int value = stream.value_full + 8 * stream.slot;
                await_phase(key + stream.FREE, stream.parity ^ 1);
                load_lines_of<T, T::KEYS>(stream.keys + to, k, col, line + block * T::KEYS, key);
                await_phase(value + stream.FREE, stream.parity ^ 1);
                load_lines_of<T, T::KEYS>(stream.values + to, v, col, line + block * T::KEYS, value);
            }
        __syncwarp();
        if (!stream.has_failed()) return;
    }
}

/// Turns of warpgroups: `number` from 1 on waits for its own, and gives the next one its turn.
__device__ inline void await_turn(int number) { asm volatile("bar.sync %0, 256;" : : "r"(number) : "memory"); }
__device__ inline void give_turn(int number) { asm volatile("bar.arrive %0, 256;" : : "r"(number) : "memory"); }

/// A warpgroup without queries only reads what passes by.
template <class T>
__device__ void skip_keys(KeyStream<T>& stream, int blocks) {
    for (int block = 0; block < blocks; ++block, stream.advance()) {
        await_phase(stream.key_full + 8 * stream.slot, stream.parity);
        stream.release(stream.key_full, stream.slot);
        await_phase(stream.value_full + 8 * stream.slot, stream.parity);
        stream.release(stream.value_full, stream.slot);
    }
}

/// A warpgroup's queries past all keys. TRUSTING takes the first tile's reference point; then `false` says that a row's
/// sum is none that it may have.
template <class T, bool TRUSTING>
__device__ bool pass_keys(KeyStream<T>& stream, typename T::Element::Out* o, const Heads& heads, float base2,
                          const StreamedQueries<T>& tile, int group, int next) {
    Queries<T> queries(nullptr, tile.first);
    unsigned int weight[T::KEYS / 16][4];
    float shift[2];
    const auto weigh = [&](int block) {
        float added[2];
        queries.mask_scores(nullptr, block * T::KEYS, heads.length, base2);
        if (!TRUSTING || block == 0) find_highest(queries, base2, TRUSTING ? T::ABOVE : 0.0f, shift);
        take_exponentials(queries, base2, shift, added);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float& sum = queries.sum[0][half];
            sum = TRUSTING ? sum + added[half] : fmaf(sum, queries.fade[0][half], added[half]);
        }
    };
    const auto keep_weights = [&] {
#pragma unroll
        for (int i = 0; i < T::KEYS / 16; ++i) queries.weigh_keys(weight[i], 0, i);
    };
    await_phase(stream.queries_full, 0);
    await_phase(stream.key_full + 8 * stream.slot, stream.parity);
    await_turn(1 + group);
    open_batch();
    multiply_keys<T>(queries.score[0], stream.queries, stream.keys + stream.slot * T::TILE);
    give_turn(1 + next);
    wait_for_batches<0>(queries.score[0]);
    stream.release(stream.key_full, stream.slot);
    weigh(0);
    keep_weights();
    int last = stream.slot;
    unsigned int last_parity = stream.parity;
    stream.advance();
#pragma unroll 1
    for (int block = 1; block < tile.blocks; ++block) {
        await_phase(stream.key_full + 8 * stream.slot, stream.parity);
        await_turn(1 + group);
        open_batch();
        multiply_keys<T>(queries.score[0], stream.queries, stream.keys + stream.slot * T::TILE);
        await_phase(stream.value_full + 8 * last, last_parity);
        open_batch();
        multiply_values<T>(queries.out[0], weight, stream.values + last * T::TILE);
        give_turn(1 + next);
        wait_for_batches<1>(queries.score[0]);
        stream.release(stream.key_full, stream.slot);
        weigh(block);
        wait_for_batches<0>(queries.out[0]);
        stream.release(stream.value_full, last);
        if (!TRUSTING) queries.fade_outputs();
        keep_weights();
        last = stream.slot, last_parity = stream.parity;
        stream.advance();
    }
    await_phase(stream.value_full + 8 * last, last_parity);
    open_batch();
    multiply_values<T>(queries.out[0], weight, stream.values + last * T::TILE);
    wait_for_batches<0>(queries.out[0]);
    stream.release(stream.value_full, last);
    queries.store(o, heads);
    bool trusted = true;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float total = queries.sum[0][half] + shuffle_xor(queries.sum[0][half], 1);
        total += shuffle_xor(total, 2);
        trusted = trusted && total < T::MOST;  // not a NaN
    }
    return trusted;
}

/// As `attend`, of blocks that have THREADS threads; `shared` has room for a tile of queries, a ring of keys and of
/// values, 32 RING + 24 bytes, and 1 KiB to whose multiples they are aligned.
template <class T>
__device__ void attend_streamed(const TensorMap& q, const TensorMap& k, const TensorMap& v, typename T::Element::Out* o,
                                Heads heads, float scale, void* shared) {
    KeyStream<T> stream(shared);
    if (threadIdx.x == 0) stream.start();
    __syncthreads();
    const StreamedQueries<T> tile(heads);
    const long long begin = heads.begin(tile.which);
    const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0);  // the same for the compiler, too
    if (group == T::GROUPS) {
        shrink_registers<T::FEW_REGISTERS>();
        const int col = begin % heads.row, line = begin / heads.row;
        if (threadIdx.x / 32 == 4 * T::GROUPS) copy_stream<T>(stream, q, k, v, col, line, tile);
    } else {
        grow_registers<T::MANY_REGISTERS>();
        const float base2 = 1.44269504f * scale;
        const int active = min(T::GROUPS, (heads.length - tile.first + 63) / 64);
        const int next = group + 1 == active ? 0 : group + 1;
        if (group == active - 1) give_turn(1);
        bool trusted = true;
        if (group >= active) skip_keys<T>(stream, tile.blocks);
        else trusted = pass_keys<T, true>(stream, o + begin, heads, base2, tile, group, next);
        stream.judge(!trusted);
        if (!stream.has_failed()) return;
        if (group >= active) skip_keys<T>(stream, tile.blocks);
        else pass_keys<T, false>(stream, o + begin, heads, base2, tile, group, next);
    }
}

#endif
