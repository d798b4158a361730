#pragma once

#include "sums/reduce.cuh"
#include "arrays/vector_load.cuh"

// Gates on a state of 2^n complex amplitudes (pairs of floats), in place. V is what one access takes: float4 holds two
// amplitudes, those that differ in qubit 0, so that qubit q is bit q - 1 of a vector's index; float2 holds one.

/// Every element of the state.
struct Every {
    __device__ long long operator()(long long i) const { return i; }
};

/// The elements whose index has bit `bit` set.
struct WhereSet {
    int bit;

    __device__ long long operator()(long long i) const {
        const long long low = i & ((1ll << bit) - 1);
        return (i - low) * 2 + (1ll << bit) + low;
    }
};

/// A vector by load4_kept where KEPT. The kernel has not written *p before.
template <bool KEPT, class V>
__device__ V load_vector(const V* p) {
    static_assert(!KEPT || sizeof(V) == sizeof(float4));
    if constexpr (KEPT) return load4_kept(reinterpret_cast<const float*>(p));
    else return *p;
}

/// element = f(element) for the `count` chosen ones, one per thread. KEPT loads are those of load4_kept, which gates that
/// touch every line gain by.
template <bool KEPT = false, class V, class Index, class F>
__device__ void map_amplitudes(V* psi, long long count, Index index, F f) {
    const long long i = grid_thread();
    if (i >= count) return;
    V* const at = psi + index(i);
    *at = f(load_vector<KEPT>(at));
}

/// `value`, as soon as `other` is there too; `nothing` is 0, which the compiler must not know.
__device__ inline float4 beside(float4 value, float4 other, unsigned int nothing) {
    value.x = __uint_as_float(__float_as_uint(value.x) ^ (__float_as_uint(other.x) & nothing));
    return value;
}

__device__ inline float2 beside(float2 value, float2 other, unsigned int nothing) {
    value.x = __uint_as_float(__float_as_uint(value.x) ^ (__float_as_uint(other.x) & nothing));
    return value;
}

/// element = f(element, partner, upper) for the `count` chosen ones; partners differ in bit `bit` of the position among
/// the chosen, `upper` is that bit. Partners in one warp change by shuffles, one element per thread; others are a
/// thread's two elements, written when both have arrived: a store into a line that is still on its way makes a swap
/// slower. Either way a warp asks for whole lines.
template <bool KEPT = false, class V, class Index, class F>
__device__ void map_partners(V* psi, long long count, int bit, Index index, F f) {
    const long long i = grid_thread();
    if (bit < 5) {
        V* const at = psi + index(i);
        const V own = i < count ? load_vector<KEPT>(at) : V{};
        const V partner = shuffle_xor(own, 1 << bit);
        if (i < count) *at = f(own, partner, (i >> bit & 1) != 0);
    } else if (2 * i < count) {
        const long long lower = WhereSet{bit}(i) - (1ll << bit);
        V* const low = psi + index(lower);
        V* const high = psi + index(lower + (1ll << bit));
        const V a = load_vector<KEPT>(low), b = load_vector<KEPT>(high);
        const unsigned int nothing = static_cast<unsigned int>(count >> 62);
        *low = beside(f(a, b, false), a, nothing);
        *high = beside(f(b, a, true), b, nothing);
    }
}

__device__ inline float2 shuffle_xor(float2 v, int mask) {
    return make_float2(shuffle_xor(v.x, mask), shuffle_xor(v.y, mask));
}

__device__ inline float4 shuffle_xor(float4 v, int mask) {
    return make_float4(shuffle_xor(v.x, mask), shuffle_xor(v.y, mask), shuffle_xor(v.z, mask), shuffle_xor(v.w, mask));
}

/// The two amplitudes of a vector change places.
struct SwapWithin {
    __device__ float4 operator()(float4 v) const { return make_float4(v.z, v.w, v.x, v.y); }
};

/// Partners change places.
struct SwapPartners {
    template <class V>
    __device__ V operator()(V, V partner, bool) const {
        return partner;
    }
};
