#pragma once

#include "attention/attention.cuh"
#include "tensor_cores/tensor_map.cuh"
#include "arrays/vector_load.cuh"

// Floats as the sum of two TF32 numbers, on their way to the warpgroups of attention_thirds.cuh.

#ifndef CPU_CUDA

/// The nearest TF32, ties away from zero; and x without the bits beyond TF32.
__device__ inline float rounded_tf32(float x) { return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u); }
__device__ inline float cut_tf32(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }

/// Four floats as their parts, `part` bytes apart.
__device__ inline void store_parts(unsigned int shared, unsigned int part, float4 x) {
    const float4 large = {rounded_tf32(x.x), rounded_tf32(x.y), rounded_tf32(x.z), rounded_tf32(x.w)};
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
                 : : "r"(shared), "f"(large.x), "f"(large.y), "f"(large.z), "f"(large.w) : "memory");
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
                 : : "r"(shared + part), "f"(x.x - large.x), "f"(x.y - large.y), "f"(x.z - large.z), "f"(x.w - large.w)
                 : "memory");
}

__device__ inline float4 load4_or_zero(const float* from, bool inside) {
    return inside ? load4(from) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

/// Tiles of keys and then of values, and barriers that say which are full and which free.
template <class T>
struct PartsRing {
    unsigned int keys, full;
    int slot = 0;
    unsigned int parity = 0;

    static constexpr unsigned int VALUES = T::RING * T::TILE, NEXT = 8 * T::RING, FREE = 2 * NEXT;
    static constexpr float TINY = 0x1p-80f, RAISED = 0x1p100f, LOWERED = 0x1p-100f;

    __device__ void start() const {
        for (int i = 0; i < 2 * T::RING; ++i) {
            start_barrier(full + 8 * i, 128);
            start_barrier(full + FREE + 8 * i, 4 * T::GROUPS);
        }
    }

    template <bool OF_VALUES>
    __device__ unsigned int tile() const { return keys + OF_VALUES * VALUES + slot * T::TILE; }
    template <bool OF_VALUES>
    __device__ unsigned int barrier() const { return full + OF_VALUES * NEXT + 8 * slot; }

    __device__ void advance() {
        if (++slot == T::RING) slot = 0, parity ^= 1;
    }

    template <bool OF_VALUES>
    __device__ void await_free() const { await_phase(barrier<OF_VALUES>() + FREE, parity ^ 1); }
    template <bool OF_VALUES>
    __device__ void await_full() const { await_phase(barrier<OF_VALUES>(), parity); }

    /// Place of the factor, for each warp's 16 columns, that the values' outputs are to be multiplied by.
    __device__ unsigned int factors() const { return full + 2 * FREE + 16 * slot; }

    /// What this thread has written is there.
    template <bool OF_VALUES>
    __device__ void fill() {
        show_to_warpgroups();
        arrive_at(barrier<OF_VALUES>());
        advance();
    }

    /// This warp has read the tile, and its lanes the factors: an arrival is about what its own thread did before.
    template <bool OF_VALUES>
    __device__ void release() const {
        if (OF_VALUES) __syncwarp();
        if (warp_lane() == 0) arrive_at(barrier<OF_VALUES>() + FREE);
    }
};

/// A warpgroup's work: all tiles of a head's keys. A thread has 4 columns of every eighth line.
template <class T>
__device__ void split_keys(PartsRing<T> ring, const float* keys, const Heads& heads, int end) {
    constexpr int LOADS = 8;
    const int thread = threadIdx.x % 128, row = thread / 16, piece = thread % 16;
    const bool inside = piece * 4 < heads.width;
    const unsigned int to = piece / 8 * T::HALF + row * T::ROW + (piece % 8 ^ row % 8) * 16;
    const float* from = keys + row * heads.row + piece * 4;
#pragma unroll 1
    for (int line = row; line - row < end; line += T::KEYS) {
        float4 x[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; ++i, from += 8 * heads.row)
            x[i] = load4_or_zero(from, inside && line + 8 * i < heads.length);
        ring.template await_free<false>();
#pragma unroll
        for (int i = 0; i < LOADS; ++i) store_parts(ring.template tile<false>() + to + 8 * i * T::ROW, T::PART, x[i]);
        ring.template fill<false>();
    }
}

/// The same of values, turned over: lines are columns of the head. Of 8 keys the even ones come first, because that is
/// how the weights lie in registers. A thread has four of them, in 4 columns of either half of the keys.
template <class T>
__device__ void split_values(PartsRing<T> ring, const float* values, const Heads& heads, int end) {
    const int thread = threadIdx.x % 128, piece = thread % 8, col = thread / 8 * 4, key = piece / 2 * 8 + piece % 2;
    const bool inside = col < heads.width;
    const float* from = values + key * heads.row + col;
#pragma unroll 1
    for (int line = key; line - key < end; line += T::KEYS, from += T::KEYS * heads.row) {
        float4 x[2][4];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int further = i / 4 * 32 + i % 4 * 2;
            x[i / 4][i % 4] = load4_or_zero(from + further * heads.row, inside && line + further < heads.length);
        }
        float most = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float4& y = x[i / 4][i % 4];
            most = fmaxf(most, fmaxf(fmaxf(fabsf(y.x), fabsf(y.y)), fmaxf(fabsf(y.z), fabsf(y.w))));
        }
        const bool tiny = !__any_sync(~0u, most >= ring.TINY);
        if (tiny)
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                float4& y = x[i / 4][i % 4];
                y = make_float4(y.x * ring.RAISED, y.y * ring.RAISED, y.z * ring.RAISED, y.w * ring.RAISED);
            }
        ring.template await_free<true>();
        if (warp_lane() == 0)
            asm volatile("st.shared.f32 [%0], %1;"
                         : : "r"(ring.factors() + thread / 32 * 4), "f"(tiny ? ring.LOWERED : 1.0f) : "memory");
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float4(&y)[4] = x[half];
            const auto store = [&](int d, float a, float b, float c, float e) {
                const unsigned int to = ring.template tile<true>() + half * T::HALF + (col + d) * T::ROW;
                store_parts(to + (piece ^ (col + d) % 8) * 16, T::PART, make_float4(a, b, c, e));
            };
            store(0, y[0].x, y[1].x, y[2].x, y[3].x);
            store(1, y[0].y, y[1].y, y[2].y, y[3].y);
            store(2, y[0].z, y[1].z, y[2].z, y[3].z);
            store(3, y[0].w, y[1].w, y[2].w, y[3].w);
        }
        ring.template fill<true>();
    }
}

/// Splits the warpgroup's queries: the larger parts stay in registers, the smaller ones go to shared memory.
template <class T>
__device__ void split_queries(unsigned int (&large)[T::STEPS][4], unsigned int small, const float* q, int first,
                              const Heads& heads) {
    const int line = threadIdx.x % 128 / 32 * 16 + warp_lane() / 4;
#pragma unroll
    for (int i = 0; i < 4 * T::STEPS; ++i) {
        const int row = line + i % 2 * 8, col = i / 4 * 8 + i / 2 % 2 * 4 + warp_lane() % 4;
        const bool inside = first + row < heads.length && col < heads.width;
        const float x = inside ? __ldg(q + row * heads.row + col) : 0.0f, part = rounded_tf32(x);
        large[i / 4][i % 4] = __float_as_uint(part);
        const unsigned int to = small + col / 32 * T::HALF + row * T::ROW + (col % 32 / 4 ^ row % 8) * 16 + col % 4 * 4;
        asm volatile("st.shared.f32 [%0], %1;" : : "r"(to), "f"(x - part) : "memory");
    }
    show_to_warpgroups();
    synchronize_warpgroup(1 + threadIdx.x / 128);
}

#endif
