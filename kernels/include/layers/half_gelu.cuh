#pragma once

#include "tensor_cores/ptx.cuh"

/// GELU of sums of products of halves: max(x, 0) - s Phi(-s) with s = |x|, and log2(Phi(-s)) as a polynomial, weighted so
/// that the absolute error is 7e-7 at most. Rounding operands to half moves a sum of size 1 by 2^-11, 700 times as much.
/// It takes a third of the instructions of Gelu, which keeps the relative accuracy of the tail.
struct GeluOfHalves {
    __device__ float operator()(float x) const {
        const float s = fminf(fabsf(x), 20.0f);
        float p = -4.766285478027932e-4f;
        p = fmaf(p, s, 7.106860337043049e-3f);
        p = fmaf(p, s, -5.1879880715763424e-2f);
        p = fmaf(p, s, -4.5993938049692235e-1f);
        p = fmaf(p, s, -1.1508097485848356f);
        p = fmaf(p, s, -1.0000350274454657f);
        return fmaf(-s, exp2_fast(p), x <= 0.0f ? 0.0f : x);  // NaN passes
    }
};
