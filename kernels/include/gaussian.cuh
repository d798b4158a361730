#pragma once

#include "map_arrays.cuh"

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

/// x - ln(1 + x) for x > -1 without cancellation near 0: with s = x / (2 + x) it is x s - 2 (s^3 / 3 + s^5 / 5 + ...).
template <class T>
__device__ T less_log1p(T x) {
    if (!(x > T(-1.0 / 3) && x < T(0.5))) return x - log1p(x);
    constexpr int LAST = sizeof(T) == 8 ? 25 : 11;  // s^2 is at most 1/25
    const T s = x / (x + T(2)), z = s * s;
    T series = T(1.0 / LAST);
#pragma unroll
    for (int odd = LAST - 2; odd >= 3; odd -= 2) series = fma(series, z, T(1.0) / T(odd));
    return fma(x, s, T(-2) * s * z * series);
}

/// D(q || p) of one dimension: (x - ln(1 + x) + (mu_q - mu_p)^2 / var_p) / 2 with var_q / var_p = 1 + x.
template <class T>
struct GaussianDivergence {
    __device__ T operator()(T mu_q, T mu_p, T var_q, T var_p) const {
        const T from = at_least(var_q), to = at_least(var_p), apart = mu_q - mu_p;
        return T(0.5) * (less_log1p((from - to) / to) + apart * apart / to);
    }
};
