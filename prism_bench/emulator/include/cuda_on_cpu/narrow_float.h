// Sixteen-bit floating types: their conversions, and arithmetic that rounds once.
#pragma once

#include <math.h>
#include <stdint.h>

#include "integer.h"

namespace cuda_cpu {

inline float half_bits_to_float(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    uint32_t bits = static_cast<uint32_t>(half & 0x7fffu) << 13;
    const uint32_t exponent = bits & 0x0f800000u;
    bits += 112u << 23;
    if (exponent == 0x0f800000u) bits += 112u << 23;
    if (exponent == 0) bits = bits_as<uint32_t>(bits_as<float>(bits + (1u << 23)) - 6.103515625e-05f);
    return bits_as<float>(bits | sign);
}

// To nearest, ties to even; every NaN becomes the device's 0x7fff.
inline uint16_t float_to_half_bits(float value) {
    const uint32_t all = bits_as<uint32_t>(value), sign = all >> 16 & 0x8000u, bits = all & 0x7fffffffu;
    if (bits > 0x7f800000u) return 0x7fff;
    if (bits >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
    // Below the normal range: adding 0.5 lets the hardware round at the right place.
    if (bits < 0x38800000u) return static_cast<uint16_t>(sign | (bits_as<uint32_t>(bits_as<float>(bits) + 0.5f) - 0x3f000000u));
    return static_cast<uint16_t>(sign | ((bits + 0xfffu + (bits >> 13 & 1) - 0x38000000u) >> 13));
}

inline float bfloat_bits_to_float(uint16_t bits) { return bits_as<float>(static_cast<uint32_t>(bits) << 16); }

inline uint16_t float_to_bfloat_bits(float value) {
    const uint32_t bits = bits_as<uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// Rounding to odd keeps the knowledge "not exact" for a second rounding, so that two roundings act as one
// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
inline double sum_to_odd(double a, double b) {
    const double sum = a + b;
    if (!(fabs(sum) < 1e300)) return sum;
    const double kept = sum - a;
    const double lost = (a - (sum - kept)) + (b - kept);
    const int64_t bits = bits_as<int64_t>(sum);
    if (lost == 0 || (bits & 1)) return sum;
    return bits_as<double>(bits + ((lost > 0) == (sum > 0) ? 1 : -1));
}

inline float to_float_odd(double value) {
    const float nearest = static_cast<float>(value);
    if (nearest == value || nearest != nearest) return nearest;
    const uint32_t bits = bits_as<uint32_t>(nearest);
    if (isinf(nearest)) return bits_as<float>((bits & 0x80000000u) | 0x7f7fffffu);
    if (bits & 1) return nearest;
    if (nearest == 0) return bits_as<float>((bits & 0x80000000u) | 1u);
    return bits_as<float>(bits + (fabs(value) > fabs(static_cast<double>(nearest)) ? 1 : -1));
}

// The value's neighbour towards zero, up or down when rounding to nearest went the other way.
template <uint16_t (*round)(float), float (*widen)(uint16_t)>
inline uint16_t directed(float value, int direction) {
    const uint16_t nearest = round(value);
    const float back = widen(nearest);
    const bool negative = value < 0;
    const bool too_far = negative ? back < value : back > value, too_near = negative ? back > value : back < value;
    const bool outward = direction != 0 && (direction > 0) != negative;
    if (back != back || back == value) return nearest;
    if (too_far && !outward) return static_cast<uint16_t>(nearest - 1);
    if (too_near && outward) return static_cast<uint16_t>(nearest + 1);
    return nearest;
}

inline float largest_number(float a, float b) { return a != a ? b : b != b ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b; }
inline float smallest_number(float a, float b) { return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b; }

}  // namespace cuda_cpu
