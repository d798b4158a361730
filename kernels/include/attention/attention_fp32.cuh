#pragma once

#include <cuda_pipeline.h>

#include "attention/attention.cuh"
#include "arrays/vector_load.cuh"

// The same in FP32: 64 queries a block, a thread has 8 of them, KEYS / 16 keys and D / 16 columns of the output.
// Queries and keys lie depth-major in shared memory, weights key-major: a thread reads what it needs side by side.

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int MOST_RESIDENT = 2;  // as many as the shared memory holds
#else
constexpr int MOST_RESIDENT = 3;
#endif

template <int D_, int KEYS_, int WIDTH_, bool CAUSAL_, bool MASKED_>
struct AttentionTile32 {
    static constexpr int D = D_, KEYS = KEYS_, WIDTH = WIDTH_, THREADS = 128, QUERIES = 64, ROWS = 8;
    static constexpr bool CAUSAL = CAUSAL_, MASKED = MASKED_, BY_WARPGROUPS = false;
    static constexpr int OWN = KEYS / 16, OUTS = D / 16, RESIDENT = D > 64 ? 1 : MASKED ? 2 : MOST_RESIDENT;
    static constexpr int UNROLLED = D <= 128 ? 2 : 1;
    // Rows 4 floats longer: groups of four stay aligned and turned copies meet few banks twice.
    static constexpr int PITCH_Q = QUERIES + 4, PITCH_K = KEYS + 4, PITCH_V = D + 4;
    static constexpr int QUERY_FLOATS = D * PITCH_Q, KEY_FLOATS = D * PITCH_K, VALUE_FLOATS = KEYS * PITCH_V;
};

/// LINES lines of D floats, turned: shared[d][line]. A warp takes 8 floats of 4 lines, which lie in 32 banks.
template <class T, int LINES, int PITCH>
__device__ void copy_turned(float* shared, const float* from, long long stride, int lines, int width) {
#pragma unroll 8
    for (int i = threadIdx.x; i < LINES * T::D; i += T::THREADS) {
        const int line = i / 32 / (T::D / 8) * 4 + i / 8 % 4, d = i / 32 % (T::D / 8) * 8 + i % 8;
        if (line < lines && d < width) __pipeline_memcpy_async(shared + d * PITCH + line, from + line * stride + d, 4);
        else shared[d * PITCH + line] = 0.0f;
    }
}

/// T::KEYS lines as they are, WIDTH floats at a time.
template <class T>
__device__ void copy_values(float* shared, const float* from, long long stride, int lines, int width) {
    constexpr int ACROSS = T::D / T::WIDTH;
#pragma unroll 4
    for (int i = threadIdx.x; i < T::KEYS * ACROSS; i += T::THREADS) {
        const int line = i / ACROSS, col = i % ACROSS * T::WIDTH;
        const bool inside = line < lines && col < width;
        __pipeline_memcpy_async(shared + line * T::PITCH_V + col, from + line * stride + col, 4 * T::WIDTH,
                                inside ? 0 : 4 * T::WIDTH);
    }
}

/// COUNT neighbouring floats: 2, or groups of 4 that lie APART.
template <int COUNT, int APART>
__device__ void read_floats(float (&to)[COUNT], const float* from) {
    if constexpr (COUNT == 2) {
        const float2 v = *reinterpret_cast<const float2*>(from);
        to[0] = v.x, to[1] = v.y;
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i += 4) {
            const float4 v = load4(from + i / 4 * APART);
            to[i] = v.x, to[i + 1] = v.y, to[i + 2] = v.z, to[i + 3] = v.w;
        }
    }
}

/// A thread's part: rows 8 `group` to 8 `group` + 7 of the block's queries; the 16 threads of a group share them.
template <class T>
struct Queries32 {
    float score[T::ROWS][T::OWN], out[T::ROWS][T::OUTS] = {}, max[T::ROWS], sum[T::ROWS] = {};
    int first, group, member;

    __device__ explicit Queries32(int block_first) {
        group = threadIdx.x / 16, member = threadIdx.x % 16;
        first = block_first + T::ROWS * group;
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i) max[i] = -infinity();
    }

    __device__ void meet_keys(const float* queries, const float* keys) {
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
            for (int j = 0; j < T::OWN; ++j) score[i][j] = 0.0f;
#pragma unroll T::UNROLLED
        for (int d = 0; d < T::D; ++d) {
            float query[T::ROWS], key[T::OWN];
            read_floats<T::ROWS, 4>(query, queries + d * T::PITCH_Q + T::ROWS * group);
            read_floats<T::OWN, 4>(key, keys + d * T::PITCH_K + T::OWN * member);
#pragma unroll
            for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
                for (int j = 0; j < T::OWN; ++j) score[i][j] = fmaf(query[i], key[j], score[i][j]);
        }
    }

    /// Scales, adds the mask, and closes keys beyond the end and, if causal, beyond the query.
    __device__ void mask_scores(const float* mask, int from, int length, float scale) {
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
            for (int j = 0; j < T::OWN; ++j) {
                const int row = first + i, key = from + T::OWN * member + j;
                const bool closed = key >= length || (T::CAUSAL && key > row);
                float s = scale * score[i][j];
                if constexpr (T::MASKED) {
                    if (!closed && row < length) s += __ldg(mask + static_cast<long long>(row) * length + key);
                }
                score[i][j] = closed ? -infinity() : s;
            }
    }

    /// Scores become exp(score - max), also in `weights`; what has been summed before is brought to that maximum.
    __device__ void weigh(float* weights) {
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i) {
            float highest = max[i];
#pragma unroll
            for (int j = 0; j < T::OWN; ++j) highest = fmaxf(highest, score[i][j]);
#pragma unroll
            for (int mask = 8; mask > 0; mask /= 2) highest = fmaxf(highest, shuffle_xor(highest, mask));
            const float shift = finite_max(highest), fade = expf(max[i] - shift);
            max[i] = highest;
            sum[i] *= fade;
#pragma unroll
            for (int j = 0; j < T::OWN; ++j) sum[i] += score[i][j] = expf(score[i][j] - shift);
#pragma unroll
            for (int j = 0; j < T::OUTS; ++j) out[i][j] *= fade;
        }
#pragma unroll
        for (int j = 0; j < T::OWN; ++j) {
            float* const to = weights + (T::OWN * member + j) * T::PITCH_Q + T::ROWS * group;
            store4(to, make_float4(score[0][j], score[1][j], score[2][j], score[3][j]));
            store4(to + 4, make_float4(score[4][j], score[5][j], score[6][j], score[7][j]));
        }
    }

    __device__ void meet_values(const float* weights, const float* values) {
#pragma unroll T::UNROLLED
        for (int key = 0; key < T::KEYS; ++key) {
            float weight[T::ROWS], value[T::OUTS];
            read_floats<T::ROWS, 4>(weight, weights + key * T::PITCH_Q + T::ROWS * group);
            read_floats<T::OUTS, 64>(value, values + key * T::PITCH_V + 4 * member);
#pragma unroll
            for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
                for (int j = 0; j < T::OUTS; ++j) out[i][j] = fmaf(weight[i], value[j], out[i][j]);
        }
    }

    __device__ void store(float* o, const Heads& heads) {
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i) {
            float total = sum[i];
#pragma unroll
            for (int mask = 8; mask > 0; mask /= 2) total += shuffle_xor(total, mask);
            const float factor = total == 0.0f ? 0.0f : 1.0f / total;
            if (first + i >= heads.length) continue;
#pragma unroll
            for (int j = 0; j < T::OUTS; ++j) {
                const int col = j / 4 * 64 + 4 * member + j % 4;
                if (col < heads.width) o[(first + i) * heads.row + col] = factor * out[i][j];
            }
        }
    }
};

/// As `attend`; `shared` has room for queries, keys, values and weights.
template <class T>
__device__ void attend_fp32(const float* q, const float* k, const float* v, const float* mask, float* o, Heads heads,
                            float scale, float* shared) {
    const int tiles = (heads.length + T::QUERIES - 1) / T::QUERIES;
    const int first = (tiles - 1 - static_cast<int>(blockIdx.x) % tiles) * T::QUERIES;
    const long long begin = heads.begin(blockIdx.x / tiles), row = heads.row;
    const int end = T::CAUSAL ? min(heads.length, first + T::QUERIES) : heads.length;
    float* const keys = shared + T::QUERY_FLOATS;
    float* const values = keys + T::KEY_FLOATS;
    float* const weights = values + T::VALUE_FLOATS;
    copy_turned<T, T::QUERIES, T::PITCH_Q>(shared, q + begin + first * row, row, heads.length - first, heads.width);
    copy_turned<T, T::KEYS, T::PITCH_K>(keys, k + begin, row, heads.length, heads.width);
    __pipeline_commit();
    Queries32<T> queries(first);
#pragma unroll 1
    for (int from = 0; from < end; from += T::KEYS) {
        __pipeline_wait_prior(0);
        __syncthreads();
        copy_values<T>(values, v + begin + from * row, row, heads.length - from, heads.width);
        __pipeline_commit();
        queries.meet_keys(shared, keys);
        __syncthreads();
        const int next = from + T::KEYS;
        if (next < end)
            copy_turned<T, T::KEYS, T::PITCH_K>(keys, k + begin + next * row, row, heads.length - next, heads.width);
        __pipeline_commit();
        queries.mask_scores(mask, from, heads.length, scale);
        queries.weigh(weights);
        __pipeline_wait_prior(1);
        __syncthreads();
        queries.meet_values(weights, values);
    }
    queries.store(o + begin, heads);
}
