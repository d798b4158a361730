#include "sums/row_sums.cuh"

__device__ unsigned int arrived;

constexpr float HALF_TURN = 3.1415927f, HALF_TURN_REST = -8.7422777e-8f;  // their sum is pi to 48 bits
constexpr float WHOLE = 12582912.0f;  // what is added to it loses its fraction, by one addition: 1.5 * 2^23
constexpr float FAR = 1048576.0f;     // from here on an angle's turns are counted in double precision

/// The angle m theta, exactly: product + rest.
struct Angle {
    float product, rest;

    __device__ Angle(float theta, float harmonic) : product(theta * harmonic), rest(fmaf(theta, harmonic, -product)) {}

    /// `turns` times `part` of pi taken off, `part` half turns being one turn.
    __device__ float less(float turns, float part) const {
        return fmaf(-turns, part * HALF_TURN_REST, fmaf(-turns, part * HALF_TURN, product)) + rest;
    }
};

// (cos, sin) of m theta, |m theta| < FAR. The angle is reduced to [-pi, pi] exactly, where the hardware's functions are
// within 5e-7.
struct Reduced {
    float harmonic;

    __device__ float2 operator()(float theta) const {
        const Angle angle(theta, harmonic);
        const float turns = __fadd_rn(__fmaf_rn(angle.product, 0.15915494f, WHOLE), -WHOLE);
        const float left = angle.less(turns, 2.0f);
        return make_float2(__cosf(left), __sinf(left));
    }
};

// By minimax polynomials in [-pi / 2, pi / 2], within 1.5e-7; an odd number of half turns changes both signs.
struct Accurate {
    float harmonic;

    __device__ float2 operator()(float theta) const {
        const Angle angle(theta, harmonic);
        const float shifted = __fmaf_rn(angle.product, 0.31830989f, WHOLE);
        const unsigned int odd = __float_as_uint(shifted) << 31;
        const float left = angle.less(__fadd_rn(shifted, -WHOLE), 1.0f), square = left * left;
        float sine = fmaf(square, 2.5999032e-06f, -0.00019806548f);
        sine = fmaf(sine, square, 0.008333016f);
        sine = fmaf(sine, square, -0.16666657f);
        sine = fmaf(sine, square * left, left);
        float cosine = fmaf(square, -2.6192484e-07f, 2.476924e-05f);
        cosine = fmaf(cosine, square, -0.0013888568f);
        cosine = fmaf(cosine, square, 0.041666657f);
        cosine = fmaf(cosine, square, -0.5f);
        cosine = fmaf(cosine, square, 1.0f);
        return make_float2(__uint_as_float(__float_as_uint(cosine) ^ odd), __uint_as_float(__float_as_uint(sine) ^ odd));
    }
};

// By the hardware's functions alone: for phases in [-pi, pi] / m.
struct Fast {
    float harmonic;

    __device__ float2 operator()(float theta) const {
        return make_float2(__cosf(theta * harmonic), __sinf(theta * harmonic));
    }
};

// Angles of any size, infinite or NaN.
struct OfDouble {
    float harmonic;

    __device__ __noinline__ float2 operator()(float theta) const {
        double sine, cosine;
        sincos(static_cast<double>(theta) * harmonic, &sine, &cosine);
        return make_float2(static_cast<float>(cosine), static_cast<float>(sine));
    }
};

/// Adds this thread's part of the sum; returns whether an angle was too far for any phasor but OfDouble.
template <int UNROLL, class Phasor>
__device__ bool add_phases(PartialSums<2>& partial, Phasor phasor, const float* theta, long long n) {
    bool far = false;
    const auto add = [&](const float(&x)[1], int slot) {
        far |= !(fabsf(x[0] * phasor.harmonic) < FAR);
        const float2 unit = phasor(x[0]);
        partial.add(0, slot, unit.x);
        partial.add(1, slot, unit.y);
    };
    visit_row_abreast<UNROLL>(n, add, theta);
    return far;
}

// r exp(i psi) = the mean of exp(i m theta). A thread that meets a far angle begins anew.
// An SM is to hold RESIDENT blocks; 0 leaves that to the compiler.
template <class Phasor, int RESIDENT>
__global__ void __launch_bounds__(512, RESIDENT)
    order_parameter(const float* theta, float* re, float* im, float* r, float* psi, double* by_block, long long n,
                    int harmonic) {
    const float times = static_cast<float>(harmonic);
    PartialSums<2> partial;
    if (add_phases<4>(partial, Phasor{times}, theta, n)) {
        partial = PartialSums<2>();
        add_phases<1>(partial, OfDouble{times}, theta, n);
    }
    double sum[2];
    partial.total(sum);
    if (!row_sums(sum, by_block, &arrived)) return;
    const double x = sum[0] / n, y = sum[1] / n;
    *re = static_cast<float>(x);
    *im = static_cast<float>(y);
    *r = static_cast<float>(hypot(x, y));
    *psi = static_cast<float>(atan2(y, x));
}
