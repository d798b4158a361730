#pragma once

#include "entropy/logarithms.cuh"
#include "arrays/map_arrays.cuh"

// Terms of Gaussian beliefs with diagonal covariances, in nats. Precisions and variances are at least LEAST.

constexpr double LEAST = 1e-10, LN_2_PI = 1.8378770664093453;

template <class T>
__device__ T at_least(T x) { return x < T(LEAST) ? T(LEAST) : x; }  // a NaN stays one

/// The observation's error, times its precision where WEIGHTED.
template <class T, bool WEIGHTED>
struct PredictionError {
    __device__ T operator()(T o, T g, T precision) const { return WEIGHTED ? precision * (o - g) : o - g; }
};

/// ln of a normal density at error e: -(precision e^2 + ln 2 pi - ln precision) / 2.
template <class T>
struct LogLikelihood {
    __device__ T operator()(T e, T precision) const {
        const T p = at_least(precision);
        return T(-0.5) * (p * e * e + (T(LN_2_PI) - log(p)));
    }
};

/// x - ln(1 + x) of x = from / to - 1 without cancellation near 0: with s = x / (2 + x) it is x s - 2 (s^3 / 3 + s^5 / 5
/// + ...). Where `from` is far smaller than `to`, x is -1 and its logarithm has to be that of the ratio.
__device__ inline double less_log1p(double from, double to) {
    const double x = (from - to) / to;
    if (!(x > -1.0 / 3 && x < 0.5)) return x - log(from / to);
    const double s = x / (x + 2.0), z = s * s;  // at most 1/25
    double series = 1.0 / 25;
#pragma unroll
    for (int odd = 23; odd >= 3; odd -= 2) series = fma(series, z, 1.0 / odd);
    return fma(x, s, -2.0 * s * z * series);
}

/// The same in floats, of x = from / to - 1 from 1e-10 to 2^125, in 7e-7 of itself and without a branch or a division:
/// with to' = to 2^k near `from`, ln(1 + x) is k ln 2 + 2 (s + s^3 / 3 + ...), s = (from - to') / (from + to'). From half
/// to twice `to` k is 0, where x - ln(1 + x) would cancel.
__device__ inline float less_log1p(float from, float to, float x) {
    const int nearest = static_cast<int>((__float_as_uint(from) - __float_as_uint(to) + 0x400000u) & ~0x7fffffu);
    const int shift = x > -0.5f && x < 1.0f ? 0 : nearest;
    const float near = __uint_as_float(__float_as_uint(to) + static_cast<unsigned int>(shift));
    const float s = (from - near) * reciprocal_fast(from + near), twice = s + s, z = s * s;  // z is at most 1/9
    float series = 1.0f / 15;
#pragma unroll
    for (int odd = 13; odd >= 3; odd -= 2) series = fmaf(series, z, 1.0f / static_cast<float>(odd));
    const float far = x - fmaf(static_cast<float>(shift), static_cast<float>(LN_2 / (1 << 23)), twice);
    return fmaf(-twice * z, series, shift == 0 ? x * s : far);
}

/// D(q || p) of one dimension: (x - ln(1 + x) + (mu_q - mu_p)^2 / var_p) / 2 with var_q / var_p = 1 + x.
template <class T>
struct GaussianDivergence {
    __device__ T operator()(T mu_q, T mu_p, T var_q, T var_p) const {
        const T from = at_least(var_q), to = at_least(var_p), apart = mu_q - mu_p;
        if constexpr (sizeof(T) == sizeof(double)) {
            return 0.5 * (less_log1p(from, to) + apart * apart / to);
        } else {
            const float guess = reciprocal_fast(to), share = fmaf(guess, fmaf(-to, guess, 1.0f), guess);
            return 0.5f * fmaf(apart * share, apart, less_log1p(from, to, (from - to) * share));
        }
    }
};
