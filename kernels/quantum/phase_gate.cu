#include "arrays/amplitudes.cuh"

/// A float constant and what its rounding lost.
struct Precise {
    float high, low;
};

/// a x + b y within about one unit in the last place, however much cancels (Kahan's scheme, and the constants' tails).
__device__ inline float rotated(Precise a, float x, Precise b, float y) {
    const float product = __fmul_rn(b.high, y);
    const float error = __fmaf_rn(b.high, y, -product);
    const float tails = __fmaf_rn(a.low, x, __fmaf_rn(b.low, y, error)), sum = __fmaf_rn(a.high, x, product);
    return isfinite(tails) ? __fadd_rn(sum, tails) : sum;  // what is infinite has no tail
}

/// The product with cos(phi) + i sin(phi).
struct Rotate {
    Precise cosine, sine;

    __device__ float2 operator()(float2 v) const {
        return make_float2(rotated(cosine, v.x, Precise{-sine.high, -sine.low}, v.y),
                           rotated(sine, v.x, cosine, v.y));
    }
};

// Multiplies the amplitudes in which the qubit is 1; the others are not touched, unless they share a vector with them.
extern "C" __global__ void phase_gate(float4* psi, long long states, int qubit, float cosine, float cosine_tail,
                                      float sine, float sine_tail) {
    const Rotate rotate = {{cosine, cosine_tail}, {sine, sine_tail}};
    if (qubit == 0) {
        map_amplitudes(psi, states / 2, Every{}, [=](float4 v) {
            const float2 upper = rotate(make_float2(v.z, v.w));
            return make_float4(v.x, v.y, upper.x, upper.y);
        });
    } else {
        map_amplitudes(psi, states / 4, WhereSet{qubit - 1}, [=](float4 v) {
            const float2 first = rotate(make_float2(v.x, v.y)), second = rotate(make_float2(v.z, v.w));
            return make_float4(first.x, first.y, second.x, second.y);
        });
    }
}
