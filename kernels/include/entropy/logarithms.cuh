#pragma once

#include "tensor_cores/ptx.cuh"
#include "sums/reduce.cuh"

// Logarithms that entropies need: a term is p times a logarithm, so what counts is the logarithm's relative accuracy,
// also near 1, where it is small.

constexpr double LN_2 = 0.6931471805599453;

/// Between 2^-126 and 2^125: neither zero, negative, subnormal, huge nor NaN.
__device__ inline bool ordinary(float x) { return __float_as_uint(x) - 0x00800000u < 0x7d800000u; }

/// log2(x), x > 0, within 3 ulp: the hardware's logarithm, except near 1, where that is accurate absolutely only.
__device__ inline float log2_of(float x) { return fabsf(x - 1.0f) < 0.5f ? log2f(x) : __log2f(x); }

/// ln(q / p) of ordinary numbers, to 3e-7 of itself and without a branch. With p' = p 2^k near q it is
/// k ln 2 + 2 atanh((q - p') / (q + p')); `difference(q - p')` is that difference, exact, or what it should be for k = 0.
template <class Difference>
__device__ float ordinary_log_ratio(float q, float p, Difference difference) {
    const int shift = static_cast<int>((__float_as_uint(q) - __float_as_uint(p) + 0x400000u) & ~0x7fffffu);
    const float near = __uint_as_float(__float_as_uint(p) + static_cast<unsigned int>(shift));
    const float s = difference(q - near, shift) * reciprocal_fast(q + near);
    const float z = s * s;
    float series = fmaf(z, 0.11111111f, 0.14285714f);
    series = fmaf(z, series, 0.2f);
    series = fmaf(z, series, 0.33333333f);
    const float twice = s + s;
    return fmaf(static_cast<float>(shift), static_cast<float>(LN_2 / (1 << 23)), fmaf(twice * z, series, twice));
}

struct AsItIs {
    __device__ AsItIs scaled(float) const { return {}; }
    __device__ float operator()(float difference, int) const { return difference; }
};

/// For a caller who has q - p more precisely than floats say it.
struct BetterKnown {
    float apart;

    __device__ BetterKnown scaled(float by) const { return {apart * by}; }
    __device__ float operator()(float difference, int shift) const { return shift == 0 ? apart : difference; }
};

/// q ln(q / p) of any numbers: 0 for q = 0 and p >= 0, infinite where only p is 0 or one of them is negative.
template <class Difference>
__device__ __noinline__ float any_relative_entropy(float q, float p, Difference difference) {
    if (q > 0.0f && p > 0.0f) {  // both subnormal or both huge, their logarithms would cancel
        const float scale = fmaxf(q, p) < 0x1p-64f ? 0x1p64f : fminf(q, p) > 0x1p64f ? 0x1p-64f : 1.0f;
        const bool both = ordinary(q * scale) && ordinary(p * scale);
        return q * (both ? ordinary_log_ratio(q * scale, p * scale, difference.scaled(scale)) : logf(q) - logf(p));
    }
    if (q == 0.0f && p >= 0.0f) return 0.0f;
    return isnan(q) || isnan(p) ? q + p : infinity();
}

__device__ inline float relative_entropy(float q, float p) {
    if (ordinary(q) && ordinary(p)) return q * ordinary_log_ratio(q, p, AsItIs{});
    return any_relative_entropy(q, p, AsItIs{});
}

__device__ inline float relative_entropy(float q, float p, float difference) {
    if (ordinary(q) && ordinary(p)) return q * ordinary_log_ratio(q, p, BetterKnown{difference});
    return any_relative_entropy(q, p, BetterKnown{difference});
}

/// The same terms without a branch, so that a thread's terms do not wait for one another. `odd` is true once there was a
/// term that only relative_entropy gets right; then all must be taken anew. In place of 0 ln(0 / p) it takes 0 ln(1 / 2):
/// of numbers apart by a power of two BetterKnown leaves the difference alone, whose powers overflow where p is large.
struct OrdinaryTerms {
    bool odd = false;

    template <class Difference = AsItIs>
    __device__ float operator()(float q, float p, Difference difference = {}) {
        const bool nothing = (q == 0.0f) & (p >= 0.0f);
        const float from = nothing ? 1.0f : q, to = nothing ? 2.0f : p;
        odd |= !(ordinary(from) & ordinary(to));
        return q * ordinary_log_ratio(from, to, difference);
    }
};
