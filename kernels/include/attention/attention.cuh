#pragma once

#include <cuda_pipeline.h>

#include "tensor_cores/ptx.cuh"
#include "sums/reduce.cuh"

// O = softmax(scale Q K^T + mask) V on the tensor cores: 16-bit operands, FP32 sums. Each of a block's 4 warps has
// 16 ROWS queries; keys and values pass by in blocks of KEYS, two of each in shared memory, and every query keeps
// its running maximum and sum. A query to which no key is open gives zeros.

/// Where the heads lie: strides in elements, `length` queries and keys, `width` of a head.
struct Heads {
    int heads, length, width;
    long long row, head, batch;

    __device__ long long begin(int which) const { return which / heads * batch + which % heads * head; }
};

/// Operands of one kind of element, and where the outputs go; KIND as in multiply_lanes.
struct HalfHead {
    using Memory = __half;
    using Out = __half;
    static constexpr int KIND = 0;

    __device__ static unsigned int pair(float low, float high) {
        const __half2 pair = __floats2half2_rn(low, high);
        const unsigned int top = __half_as_ushort(__high2half(pair));
        return top << 16 | __half_as_ushort(__low2half(pair));
    }
    __device__ static void store2(Out* to, float x, float y) {
        *reinterpret_cast<__half2*>(to) = __floats2half2_rn(x, y);
    }
    __device__ static void store(Out* to, float x) { *to = __float2half_rn(x); }
};

struct BfloatHead {
    using Memory = unsigned short;
    using Out = float;
    static constexpr int KIND = 1;

    __device__ static unsigned int pair(float low, float high) { return bfloat_pair(low, high); }
    __device__ static void store2(Out* to, float x, float y) { *reinterpret_cast<float2*>(to) = make_float2(x, y); }
    __device__ static void store(Out* to, float x) { *to = x; }
};

/// D is the width of a head, rounded up with zeros; WIDTH elements are copied at once, 8 or 1.
template <int D_, int ROWS_, int KEYS_, int WIDTH_, bool CAUSAL_, bool MASKED_, class E = HalfHead>
struct AttentionTile {
    using Element = E;
    static constexpr int D = D_, ROWS = ROWS_, KEYS = KEYS_, WIDTH = WIDTH_, THREADS = 128, QUERIES = 64 * ROWS;
    static constexpr bool CAUSAL = CAUSAL_, MASKED = MASKED_, KEEPS_QUERIES = D <= 64;
    static constexpr int PITCH = D + 8, STAGE = KEYS * PITCH;  // rows 16 bytes longer: no bank conflicts
    static constexpr int RESIDENT = D <= 128 ? 2 : 1;
    static constexpr bool BY_WARPGROUPS = false;
};

template <class T, int LINES>
__device__ void copy_lines(unsigned short* shared, const unsigned short* from, long long stride, int lines, int width) {
    constexpr int ACROSS = T::D / T::WIDTH, COUNT = LINES * ACROSS / T::THREADS;
    constexpr int UNROLLED = T::WIDTH == 1 ? 4 : T::CAUSAL ? 1 : 2;  // more would cost registers
#pragma unroll UNROLLED
    for (int i = 0; i < COUNT; ++i) {
        const int at = i * T::THREADS + threadIdx.x, line = at / ACROSS, col = at % ACROSS * T::WIDTH;
        const bool inside = line < lines && col < width;
        unsigned short* const to = shared + line * T::PITCH + col;
        const unsigned short* const source = from + line * stride + col;
        if constexpr (T::WIDTH > 1) __pipeline_memcpy_async(to, source, 16, inside ? 0 : 16);
        else *to = inside ? *source : 0;
    }
}

/// The reference point of exponentials: 0 where no key has been seen yet, so that exp(-inf - 0) = 0.
__device__ inline float finite_max(float max) { return max == -infinity() ? 0.0f : max; }

/// A warp's queries: scores of one block of keys, then their exponentials; running maxima, sums and outputs.
template <class T>
struct Queries {
    static constexpr int BLOCKS = T::KEYS / 8, OUTS = T::D / 8, KEPT = T::KEEPS_QUERIES ? T::D / 16 : 1;
    unsigned int query[T::ROWS][KEPT][4];
    float score[T::ROWS][BLOCKS][4], out[T::ROWS][OUTS][4], max[T::ROWS][2], sum[T::ROWS][2], fade[T::ROWS][2];
    const unsigned short* own;  // this warp's queries in shared memory
    int first;                  // and the first one's number

    __device__ Queries(const unsigned short* shared, int block_first) {
        const int warp = threadIdx.x / 32;
        own = shared + warp * 16 * T::ROWS * T::PITCH;
        first = block_first + warp * 16 * T::ROWS;
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i) {
            max[i][0] = max[i][1] = -infinity();
            sum[i][0] = sum[i][1] = 0.0f;
#pragma unroll
            for (int j = 0; j < OUTS; ++j) out[i][j][0] = out[i][j][1] = out[i][j][2] = out[i][j][3] = 0.0f;
        }
    }

    /// Called when the queries have arrived.
    __device__ void keep() {
        if constexpr (T::KEEPS_QUERIES) {
#pragma unroll
            for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
                for (int d = 0; d < KEPT; ++d) load_lines(query[i][d], own + 16 * i * T::PITCH + 16 * d, T::PITCH);
        }
    }

    __device__ void meet_keys(const unsigned short* keys) {
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
            for (int j = 0; j < BLOCKS; ++j) score[i][j][0] = score[i][j][1] = score[i][j][2] = score[i][j][3] = 0.0f;
#pragma unroll
        for (int d = 0; d < T::D / 16; ++d) {
            const int kept = T::KEEPS_QUERIES ? d : 0;
            if constexpr (!T::KEEPS_QUERIES) {
#pragma unroll
                for (int i = 0; i < T::ROWS; ++i) load_lines(query[i][0], own + 16 * i * T::PITCH + 16 * d, T::PITCH);
            }
#pragma unroll
            for (int j = 0; j < BLOCKS / 2; ++j) {
                unsigned int key[4];
                load_lines(key, keys + 16 * j * T::PITCH + 16 * d, T::PITCH);
#pragma unroll
                for (int i = 0; i < T::ROWS; ++i) {
                    multiply_lanes<T::Element::KIND>(score[i][2 * j], query[i][kept], key[0], key[2]);
                    multiply_lanes<T::Element::KIND>(score[i][2 * j + 1], query[i][kept], key[1], key[3]);
                }
            }
        }
    }

    __device__ int row_at(int i, int e) const { return first + 16 * i + warp_lane() / 4 + e / 2 * 8; }
    __device__ static int key_at(int j, int e) { return 8 * j + warp_lane() % 4 * 2 + e % 2; }

    /// Closes keys beyond the end and, if causal, beyond the query; adds the mask to the scaled scores.
    __device__ void mask_scores(const float* mask, int from, int length, float scale) {
        const int open = T::CAUSAL ? min(length, first + 1) : length;
        if (!T::MASKED && from + T::KEYS <= open) return;
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
            for (int j = 0; j < BLOCKS; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int row = row_at(i, e), key = from + key_at(j, e);
                    const bool closed = key >= length || (T::CAUSAL && key > row);
                    float& s = score[i][j][e];
                    if constexpr (T::MASKED) {
                        if (!closed && row < length)
                            s = fmaf(s, scale, 1.44269504f * __ldg(mask + static_cast<long long>(row) * length + key));
                    }
                    if (closed) s = -infinity();
                }
    }

    /// The online softmax: scores become exp2(scale (score - max)), sums are brought to that max, outputs follow later.
    __device__ void weigh(float scale) {
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float highest = max[i][half];
#pragma unroll
                for (int j = 0; j < BLOCKS; ++j)
                    highest = fmaxf(highest, fmaxf(score[i][j][2 * half], score[i][j][2 * half + 1]));
                highest = fmaxf(highest, shuffle_xor(highest, 1));
                highest = fmaxf(highest, shuffle_xor(highest, 2));
                const float shift = scale * finite_max(highest);
                fade[i][half] = exp2_fast(fmaf(scale, max[i][half], -shift));
                max[i][half] = highest;
                float added = 0.0f;
#pragma unroll
                for (int j = 0; j < BLOCKS; ++j)
#pragma unroll
                    for (int e = 2 * half; e < 2 * half + 2; ++e)
                        added += score[i][j][e] = exp2_fast(fmaf(scale, score[i][j][e], -shift));
                sum[i][half] = fmaf(sum[i][half], fade[i][half], added);
            }
    }

    /// Brings what has been added to the outputs to the latest maximum.
    __device__ void fade_outputs() {
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
            for (int j = 0; j < OUTS; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) out[i][j][e] *= fade[i][e / 2];
    }

    /// The exponentials of keys 16 k to 16 k + 15 as the left operand of a product.
    __device__ void weigh_keys(unsigned int (&weight)[4], int i, int k) const {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const float* const s = score[i][2 * k + r / 2] + r % 2 * 2;
            weight[r] = T::Element::pair(s[0], s[1]);
        }
    }

    __device__ void meet_values(const unsigned short* values) {
#pragma unroll
        for (int k = 0; k < T::KEYS / 16; ++k) {
            unsigned int weight[T::ROWS][4];
#pragma unroll
            for (int i = 0; i < T::ROWS; ++i) weigh_keys(weight[i], i, k);
#pragma unroll
            for (int j = 0; j < OUTS / 2; ++j) {
                unsigned int value[4];
                load_turned(value, values + 16 * k * T::PITCH + 16 * j, T::PITCH);
#pragma unroll
                for (int i = 0; i < T::ROWS; ++i) {
                    multiply_lanes<T::Element::KIND>(out[i][2 * j], weight[i], value[0], value[2]);
                    multiply_lanes<T::Element::KIND>(out[i][2 * j + 1], weight[i], value[1], value[3]);
                }
            }
        }
    }

    __device__ void store(typename T::Element::Out* o, const Heads& heads) {
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float total = sum[i][half];
                total += shuffle_xor(total, 1);
                total += shuffle_xor(total, 2);
                const float factor = total == 0.0f ? 0.0f : 1.0f / total;
                const int row = row_at(i, 2 * half);
                if (row >= heads.length) continue;
                auto* const line = o + row * heads.row;
#pragma unroll
                for (int j = 0; j < OUTS; ++j) {
                    const int col = key_at(j, 0);
                    const float x = factor * out[i][j][2 * half], y = factor * out[i][j][2 * half + 1];
                    if (T::WIDTH > 1 && col < heads.width) T::Element::store2(line + col, x, y);
                    if (T::WIDTH == 1 && col < heads.width) T::Element::store(line + col, x);
                    if (T::WIDTH == 1 && col + 1 < heads.width) T::Element::store(line + col + 1, y);
                }
            }
    }
};

/// A block's queries and where its head's keys and values begin. A 1-D grid has a block for each tile of queries of
/// each head, the last tiles (a causal product's longest) first.
template <class T>
struct HeadTile {
    using Memory = typename T::Element::Memory;
    int which, first, length, width;
    long long begin, row;
    const unsigned short *keys, *values;

    __device__ HeadTile(const Memory* k, const Memory* v, const Heads& heads) {
        const int tiles = (heads.length + T::QUERIES - 1) / T::QUERIES;
        which = blockIdx.x / tiles;
        first = (tiles - 1 - static_cast<int>(blockIdx.x) % tiles) * T::QUERIES;
        length = heads.length, width = heads.width, row = heads.row;
        begin = heads.begin(which);
        keys = reinterpret_cast<const unsigned short*>(k + begin);
        values = reinterpret_cast<const unsigned short*>(v + begin);
    }

    __device__ void copy_queries(unsigned short* shared, const Memory* q) const {
        const unsigned short* const from = reinterpret_cast<const unsigned short*>(q + begin) + first * row;
        copy_lines<T, T::QUERIES>(shared, from, row, length - first, width);
    }

    __device__ void copy(unsigned short* to, int from) const {
        copy_lines<T, T::KEYS>(to, keys + from * row, row, length - from, width);
        copy_lines<T, T::KEYS>(to + T::STAGE, values + from * row, row, length - from, width);
    }

    /// The key after the last that is open to one of the queries.
    __device__ int end() const { return T::CAUSAL ? min(length, first + T::QUERIES) : length; }

    /// Calls step(first key, keys and then values in shared memory) for each block of keys before `end`.
    template <class Step>
    __device__ void walk(int end, unsigned short* stages, Step step) const {
        copy(stages, 0);
        __pipeline_commit();
        int stage = 0;
#pragma unroll 1
        for (int from = 0; from < end; from += T::KEYS, stage ^= 1) {
            __pipeline_wait_prior(0);
            __syncthreads();
            if (from + T::KEYS < end) copy(stages + 2 * (stage ^ 1) * T::STAGE, from + T::KEYS);
            __pipeline_commit();
            step(from, stages + 2 * stage * T::STAGE);
        }
    }
};

/// `shared` has room for a tile of queries and two stages of keys and values.
template <class T>
__device__ void attend(const typename T::Element::Memory* q, const typename T::Element::Memory* k,
                       const typename T::Element::Memory* v, const float* mask, typename T::Element::Out* o,
                       Heads heads, float scale, unsigned short* shared) {
    const HeadTile<T> tile(k, v, heads);
    const float base2 = 1.44269504f * scale;
    Queries<T> queries(shared, tile.first);
    tile.copy_queries(shared, q);
    tile.walk(tile.end(), shared + T::QUERIES * T::PITCH, [&](int from, const unsigned short* keys) {
        if (from == 0) queries.keep();
        queries.meet_keys(keys);
        queries.mask_scores(mask, from, heads.length, base2);
        queries.weigh(T::MASKED ? 1.0f : base2);
        queries.fade_outputs();
        queries.meet_values(keys + T::STAGE);
    });
    queries.store(o + tile.begin, heads);
}
