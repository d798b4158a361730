#pragma once

#include "arrays/vector_load.cuh"

// The bins of samples over equal bins of two axes. A value's bin is floor(bins (x - lo) / (hi - lo)) in double precision, the
// last one closed; out of range it is dropped, or clamped into the edge bins. A NaN is always dropped.

constexpr int DROPPED = -1;

/// One axis. A single product and sum in single precision gives the bin as a whole number with FRACTION bits behind the
/// point, from which it may be `reach` such steps away: only so near to a whole number it must be made sure.
template <bool CLAMP>
struct Axis {
    float lo, hi, scale, shift;
    int bins, fraction;
    unsigned int base, up, reach;

    __device__ Axis(float lo, float hi, int bins) : lo(lo), hi(hi), bins(bins) {
        fraction = max(1, 23 - (32 - __clz(bins - 1)));  // so that 2^(23 - fraction) >= bins, where a float's last bit is
        const double exact = bins / (static_cast<double>(hi) - lo), one = static_cast<double>(1u << (23 - fraction));
        scale = static_cast<float>(exact);
        shift = static_cast<float>(one - static_cast<double>(lo) * scale);
        const double width = static_cast<double>(hi) - lo, shifted = one - static_cast<double>(lo) * scale;
        const double apart = fabs(shifted - shift) + fabs(exact - scale) * width;
        const double steps = 0.501 + 2.0 * apart * (1u << fraction);
        base = __float_as_uint(static_cast<float>(one)), up = 1u << (32 - fraction);
        const bool usable = steps < (1u << fraction) / 4 && bins <= 1 << 22 && !isinf(scale);
        reach = usable ? max(static_cast<unsigned int>(steps), 1u) : (1u << fraction) / 2;  // a NaN is a step away
    }

    __device__ bool keeps(float x) const { return CLAMP ? !isnan(x) : x >= lo && x <= hi; }
    __device__ float held(float x) const { return !CLAMP ? x : x < lo ? lo : x > hi ? hi : x; }

    /// x in steps, `base` more, as the bits of a float. Those of a NaN end in ones or in zeros: near a whole number.
    __device__ unsigned int bits(float x) const { return __float_as_uint(fmaf(x, scale, shift)); }
    /// The steps; where samples are clamped, those of the nearest on the axis. A negative float is a negative integer.
    __device__ unsigned int steps(unsigned int bits) const {
        if (!CLAMP) return bits - base;
        const int at = max(static_cast<int>(bits), static_cast<int>(base));
        return min(at - static_cast<int>(base), static_cast<int>((static_cast<unsigned int>(bins) << fraction) - 1));
    }
    __device__ bool inside(unsigned int steps) const {
        return CLAMP || steps < static_cast<unsigned int>(bins) << fraction;
    }
    /// How far from a whole number, beyond `reach` below it; twice `reach` is too near. `base` has no bits in a fraction.
    __device__ unsigned int distance(unsigned int bits) const { return bits * up + reach * up; }
    __device__ bool sure(unsigned int distance) const { return distance > 2 * reach * up; }

    __device__ __noinline__ int sure_bin(float x) const {
        const double place = bins * (static_cast<double>(held(x)) - lo) / (static_cast<double>(hi) - lo);
        return min(static_cast<int>(floor(place)), bins - 1);
    }
};

template <bool CLAMP>
struct Grid {
    Axis<CLAMP> across, up;

    /// The bins of four samples.
    __device__ void find(float4 u, float4 v, int (&bin)[4]) const {
        const float x[4] = {u.x, u.y, u.z, u.w}, y[4] = {v.x, v.y, v.z, v.w};
        unsigned int nearest_across = ~0u, nearest_up = ~0u;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const unsigned int x_bits = across.bits(x[k]), y_bits = up.bits(y[k]);
            const unsigned int column = across.steps(x_bits), row = up.steps(y_bits);
            nearest_across = min(nearest_across, across.distance(x_bits));
            nearest_up = min(nearest_up, up.distance(y_bits));
            const int place = static_cast<int>((row >> up.fraction) * across.bins + (column >> across.fraction));
            bin[k] = across.inside(column) && up.inside(row) ? place : DROPPED;
        }
        if (across.sure(nearest_across) && up.sure(nearest_up)) return;
#pragma unroll
        for (int k = 0; k < 4; ++k)
            bin[k] = !across.keeps(x[k]) || !up.keeps(y[k]) ? DROPPED : up.sure_bin(y[k]) * across.bins + across.sure_bin(x[k]);
    }
};

__device__ inline float nothing() { return __int_as_float(0x7fffffff); }

__device__ inline float4 no_samples() { return make_float4(nothing(), nothing(), nothing(), nothing()); }
