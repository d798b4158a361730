#pragma once

#include "attention/attention_fp32.cuh"
#include "attention/attention_parts.cuh"
#include "attention/attention_weigh.cuh"
#include "tensor_cores/tensor_map.cuh"

// The attention of attention_fp32.cuh by warpgroup instructions, for compute capability 9.0 alone (on the CPU there is
// nothing to call). Every float is the sum of two TF32 numbers, of whose products the smallest is left out. Two
// warpgroups have 64 queries each; a third one splits keys and a fourth one values, which it also turns over, because
// these instructions take TF32 with the depth contiguous only. Tensor cores cut sums short, always towards zero: the
// outputs of a tile of keys are summed alone and added as FP32 is. Nor has TF32 more bits below 2^-126 than above: a
// tile of values that are all tiny is multiplied by 2^100 meanwhile.

template <class T>
__device__ void attend_by_thirds(const float* q, const float* k, const float* v, const float* mask, float* o,
                                 Heads heads, float scale, void* shared);

/// On the ordinary cores or by warpgroups, as T says.
template <class T>
__device__ void attend_floats_as(const float* q, const float* k, const float* v, const float* mask, float* o,
                                 Heads heads, float scale, void* shared) {
    if constexpr (T::BY_WARPGROUPS) attend_by_thirds<T>(q, k, v, mask, o, heads, scale, shared);
    else attend_fp32<T>(q, k, v, mask, o, heads, scale, static_cast<float*>(shared));
}

#ifndef CPU_CUDA

struct FloatHead {
    using Memory = float;
    using Out = float;

    __device__ static void store2(Out* to, float x, float y) { *reinterpret_cast<float2*>(to) = make_float2(x, y); }
    __device__ static void store(Out* to, float x) { *to = x; }
};

/// Heads of up to 64 columns in whole pieces of 16 bytes. A tile is 64 lines of 64 floats, in two halves of 32 columns
/// in the order of operand_at: first the larger parts, then the smaller ones. RING tiles of keys and of values have
/// room.
template <bool CAUSAL_, bool MASKED_>
struct AttentionThirds {
    using Element = FloatHead;
    static constexpr int D = 64, KEYS = 64, RING = 2, GROUPS = 2, THREADS = 128 * (GROUPS + 2), QUERIES = 64 * GROUPS;
    static constexpr int ROWS = 1, WIDTH = 4, PITCH = D, RESIDENT = 1, STEPS = 8;
    static constexpr bool CAUSAL = CAUSAL_, MASKED = MASKED_, KEEPS_QUERIES = false, BY_WARPGROUPS = true;
    static constexpr unsigned int ROW = 128, HALF = 64 * ROW, PART = 2 * HALF, TILE = 2 * PART;

    /// Where step `step`, 8 floats deep, begins in a part.
    __device__ static unsigned int step_at(int step) { return step / 4 * HALF + step % 4 * 32; }
};

#define THIRD "{.reg .pred p; setp.ne.b32 p, %"
#define THIRD_OF ", 0; wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {" NUMBERS_TO_31 "}, "

/// sum = (KEEP ? sum : 0) + a b, 64 rows, 64 columns, 8 deep, in TF32: a in registers or in shared memory, the depth of
/// what is there contiguous. Bits beyond TF32 are cut off.
template <bool KEEP>
__device__ inline void multiply_floats(float (&sum)[8][4], const unsigned int (&a)[4], unsigned long long b) {
    asm volatile(THIRD "37" THIRD_OF "{%32, %33, %34, %35}, %36, p, 1, 1;}"
                 : SUMS_32(0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(KEEP));
}

template <bool KEEP>
__device__ inline void multiply_floats(float (&sum)[8][4], unsigned long long a, unsigned long long b) {
    asm volatile(THIRD "34" THIRD_OF "%32, %33, p, 1, 1;}" : SUMS_32(0) : "l"(a), "l"(b), "n"(KEEP));
}

#undef THIRD
#undef THIRD_OF

/// Scores of a tile of keys, the smaller products first.
template <class T>
__device__ void multiply_keys(float (&score)[8][4], const unsigned int (&large)[T::STEPS][4], unsigned long long small,
                              unsigned long long keys) {
    open_batch();
    multiply_floats<false>(score, large[0], moved(keys, T::PART));
#pragma unroll
    for (int i = 1; i < T::STEPS; ++i) multiply_floats<true>(score, large[i], moved(keys, T::PART + T::step_at(i)));
#pragma unroll
    for (int i = 0; i < T::STEPS; ++i)
        multiply_floats<true>(score, moved(small, T::step_at(i)), moved(keys, T::step_at(i)));
#pragma unroll
    for (int i = 0; i < T::STEPS; ++i) multiply_floats<true>(score, large[i], moved(keys, T::step_at(i)));
    close_batch();
}

/// What the weights of a tile of keys give, the smaller products first.
template <class T>
__device__ void multiply_values(float (&sum)[8][4], const unsigned int (&large)[T::STEPS][4],
                                const unsigned int (&small)[T::STEPS][4], unsigned long long values) {
    open_batch();
    multiply_floats<false>(sum, large[0], moved(values, T::PART));
#pragma unroll
    for (int i = 1; i < T::STEPS; ++i) multiply_floats<true>(sum, large[i], moved(values, T::PART + T::step_at(i)));
#pragma unroll
    for (int i = 0; i < T::STEPS; ++i) multiply_floats<true>(sum, small[i], moved(values, T::step_at(i)));
#pragma unroll
    for (int i = 0; i < T::STEPS; ++i) multiply_floats<true>(sum, large[i], moved(values, T::step_at(i)));
    close_batch();
}

/// As `attend`; `shared` has room for two rings, the smaller parts of the queries, 96 bytes, and 1 KiB to whose
/// multiples they are aligned.
template <class T>
__device__ void attend_by_thirds(const float* q, const float* k, const float* v, const float* mask, float* o,
                                 Heads heads, float scale, void* shared) {
    const unsigned int own = (shared_address(shared) + 1023) / 1024 * 1024;
    const unsigned int barriers = own + (2 * T::RING + 1) * T::TILE;
    PartsRing<T> ring{own + T::TILE, barriers};
    if (threadIdx.x == 0) ring.start();
    __syncthreads();
    const int tiles = (heads.length + T::QUERIES - 1) / T::QUERIES;
    const int first = (tiles - 1 - static_cast<int>(blockIdx.x) % tiles) * T::QUERIES;
    const int end = T::CAUSAL ? min(heads.length, first + T::QUERIES) : heads.length;
    const long long begin = heads.begin(blockIdx.x / tiles);
    const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0);  // the same for the compiler, too
    if (group >= T::GROUPS) {
        shrink_registers<64>();
        if (group == T::GROUPS) split_keys<T>(ring, k + begin, heads, end);
        else split_values<T>(ring, v + begin, heads, end);
    } else {
        grow_registers<192>();
        const int mine = first + 64 * group;
        const float base2 = 1.44269504f * scale;
        const unsigned long long small = operand_at(own + group * T::PART, 16);
        unsigned int large[T::STEPS][4];
        float sum[8][4];
        Queries<T> queries(nullptr, first);
        split_queries<T>(large, own + group * T::PART, q + begin + mine * heads.row, mine, heads);
#pragma unroll 1
        for (int from = 0; from < end; from += T::KEYS) {
            ring.template await_full<false>();
            multiply_keys<T>(queries.score[0], large, small, operand_at(ring.template tile<false>(), 16));
            wait_for_batches<0>(queries.score[0]);
            ring.template release<false>();
            queries.mask_scores(mask, from, heads.length, base2);
            weigh_rows(queries, T::MASKED ? 1.0f : base2);
            unsigned int weight[T::STEPS][4], rest[T::STEPS][4];
#pragma unroll
            for (int i = 0; i < 4 * T::STEPS; ++i) {
                const float x = queries.score[0][i / 4][i % 2 * 2 + i / 2 % 2];
                weight[i / 4][i % 4] = __float_as_uint(x), rest[i / 4][i % 4] = __float_as_uint(x - cut_tf32(x));
            }
            ring.template await_full<true>();
            multiply_values<T>(sum, weight, rest, operand_at(ring.template tile<true>(), 16));
            float factor[4];
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(factor[0]), "=f"(factor[1]), "=f"(factor[2]), "=f"(factor[3]) : "r"(ring.factors())
                         : "memory");
            wait_for_batches<0>(sum);
            ring.template release<true>();
            ring.advance();
#pragma unroll
            for (int i = 0; i < 32; ++i) {
                float& out = queries.out[0][i / 4][i % 4];
                out = fmaf(out, queries.fade[0][i % 4 / 2], factor[i / 8] * sum[i / 4][i % 4]);
            }
        }
        queries.store(o + begin, heads);
    }
}

#endif
