#include "row_sums.cuh"

__device__ unsigned int arrived;

constexpr float TURN = 6.2831855f, TURN_REST = -1.7484556e-7f;  // their sum is 2 pi to 50 bits

/// The angle m theta, exactly: product + rest.
struct Angle {
    float product, rest;

    __device__ Angle(float theta, float harmonic) : product(theta * harmonic), rest(fmaf(theta, harmonic, -product)) {}
};

// The rare angle that is very large, infinite or NaN.
__device__ __noinline__ float2 of_double(double angle) {
    double sine, cosine;
    sincos(angle, &sine, &cosine);
    return make_float2(static_cast<float>(cosine), static_cast<float>(sine));
}

// (cos, sin) of m theta. The angle is reduced to [-pi, pi] exactly, where the hardware's functions are within 5e-7.
struct Reduced {
    float harmonic;

    __device__ float2 operator()(float theta) const {
        const Angle angle(theta, harmonic);
        if (!(fabsf(angle.product) < 1048576.0f)) return of_double(static_cast<double>(theta) * harmonic);
        const float turns = rintf(angle.product * 0.15915494f);
        const float left = fmaf(-turns, TURN_REST, fmaf(-turns, TURN, angle.product)) + angle.rest;
        return make_float2(__cosf(left), __sinf(left));
    }
};

// By the library's functions, within 1e-7.
struct Accurate {
    float harmonic;

    __device__ float2 operator()(float theta) const {
        const Angle angle(theta, harmonic);
        if (!(fabsf(angle.product) < 1048576.0f)) return of_double(static_cast<double>(theta) * harmonic);
        float sine, cosine;
        sincosf(angle.product, &sine, &cosine);
        return make_float2(fmaf(-angle.rest, sine, cosine), fmaf(angle.rest, cosine, sine));
    }
};

// By the hardware's functions alone: for phases in [-pi, pi] / m.
struct Fast {
    float harmonic;

    __device__ float2 operator()(float theta) const {
        return make_float2(__cosf(theta * harmonic), __sinf(theta * harmonic));
    }
};

// r exp(i psi) = the mean of exp(i m theta).
template <class Phasor>
__global__ void __launch_bounds__(512) order_parameter(const float* theta, float* re, float* im, float* r, float* psi,
                                                       double* by_block, long long n, int harmonic) {
    PartialSums<2> partial;
    const Phasor phasor = {static_cast<float>(harmonic)};
    const auto add = [&](const float(&x)[1], int slot) {
        const float2 unit = phasor(x[0]);
        partial.add(0, slot, unit.x);
        partial.add(1, slot, unit.y);
    };
    visit_row<4>(n, add, theta);
    double sum[2];
    partial.total(sum);
    if (!row_sums(sum, by_block, &arrived)) return;
    const double x = sum[0] / n, y = sum[1] / n;
    *re = static_cast<float>(x);
    *im = static_cast<float>(y);
    *r = static_cast<float>(hypot(x, y));
    *psi = static_cast<float>(atan2(y, x));
}
