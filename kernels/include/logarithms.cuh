#pragma once

#include "reduce.cuh"

// Logarithms that entropies need: a term is p times a logarithm, so what counts is the logarithm's relative accuracy,
// also near 1, where it is small.

constexpr double LN_2 = 0.6931471805599453;

/// Between 2^-100 and 2^100: neither zero, negative, subnormal, huge nor NaN.
__device__ inline bool ordinary(float x) { return __float_as_uint(x) - 0x0d800000u < 0x64000000u; }

/// log2(x), x > 0, within 3 ulp: the hardware's logarithm, except near 1, where that is accurate absolutely only.
__device__ inline float log2_of(float x) { return fabsf(x - 1.0f) < 0.5f ? log2f(x) : __log2f(x); }

/// ln(q / p), q > 0 and p > 0, to 3e-7 of itself. `difference` is q - p, from which the logarithm of a ratio near 1
/// comes: a caller who has p more precisely than a float can say so there. With p' = p 2^k near q it is
/// k ln 2 + 2 atanh((q - p') / (q + p')), and the difference is exact.
__device__ inline float log_ratio(float q, float p, float difference) {
    if (!ordinary(q) || !ordinary(p)) return logf(q) - logf(p);
    const int shift = (__float_as_int(q) - __float_as_int(p) + 0x400000) & ~0x7fffff;
    const float near = __int_as_float(__float_as_int(p) + shift);
    const float s = __fdividef(shift == 0 ? difference : q - near, q + near);
    const float z = s * s;
    float series = fmaf(z, 0.11111111f, 0.14285714f);
    series = fmaf(z, series, 0.2f);
    series = fmaf(z, series, 0.33333333f);
    const float twice = s + s;
    return fmaf(static_cast<float>(shift), static_cast<float>(LN_2 / (1 << 23)), fmaf(twice * z, series, twice));
}

__device__ inline float log_ratio(float q, float p) { return log_ratio(q, p, q - p); }

/// q ln(q / p); 0 for q = 0 and p >= 0, infinite where only p is 0 or one of them is negative. `difference` as above.
__device__ inline float relative_entropy(float q, float p, float difference) {
    if (q > 0.0f && p > 0.0f) return q * log_ratio(q, p, difference);
    if (q == 0.0f && p >= 0.0f) return 0.0f;
    return isnan(q) || isnan(p) ? q + p : infinity();
}

__device__ inline float relative_entropy(float q, float p) { return relative_entropy(q, p, q - p); }
