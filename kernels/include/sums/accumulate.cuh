#pragma once

// Accumulators for long sums: plain float or double, and float with a running compensation.

/// A sum in T. Products are fused into it.
template <class T>
struct Plain {
    T sum = 0;

    __device__ void add(float x) { sum += x; }
    __device__ void add_product(float a, float b) { sum = fma(static_cast<T>(a), static_cast<T>(b), sum); }
    __device__ double value() const { return sum; }
};

/// A float sum and a float sum of what it lost: about twice the precision (Ogita, Rump and Oishi 2005, Sum2 and Dot2).
/// The intrinsics keep the compiler from fusing or reordering what must be rounded step by step.
struct Compensated {
    float sum = 0.0f;
    float lost = 0.0f;

    __device__ void add(float x) {
        const float next = __fadd_rn(sum, x);
        const float taken = __fsub_rn(next, sum);
        const float error = __fadd_rn(__fsub_rn(sum, __fsub_rn(next, taken)), __fsub_rn(x, taken));
        lost = __fadd_rn(lost, error);
        sum = next;
    }
    __device__ void add_product(float a, float b) {
        const float product = __fmul_rn(a, b);
        lost = __fadd_rn(lost, __fmaf_rn(a, b, -product));
        add(product);
    }
    /// An infinite or NaN sum has a NaN compensation, which must not spoil it.
    __device__ double value() const { return isfinite(sum) ? static_cast<double>(sum) + lost : sum; }
};
