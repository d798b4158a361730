// e4m3 and e5m2 of the OCP's 8-bit floating point specification, their pairs and fours, and conversions.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace cuda_cpu {

// To nearest, ties to even. What overflows becomes the largest number, or without saturation infinity in e5m2 and NaN
// in e4m3, which has no infinity; every NaN becomes the device's 0x7f.
inline unsigned char to_fp8(double value, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
    const int digits = kind == __NV_E5M2 ? 2 : 3, bias = kind == __NV_E5M2 ? 15 : 7;
    const double largest = kind == __NV_E5M2 ? 57344.0 : 448.0, size = fabs(value);
    if (value != value) return 0x7f;
    const unsigned char sign = signbit(value) ? 0x80 : 0;
    const int lowest = 1 - bias, first = size > 0 && size <= 2 * largest ? ilogb(size) : lowest;
    const double unit = ldexp(1.0, (first > lowest ? first : lowest) - digits);
    const double rounded = size > 2 * largest ? size : rint(size / unit) * unit;
    if (rounded > largest) {
        if (saturation == __NV_SATFINITE) return sign | (kind == __NV_E5M2 ? 0x7b : 0x7e);
        return sign | (kind == __NV_E5M2 ? 0x7c : 0x7f);
    }
    const int reached = rounded > 0 ? ilogb(rounded) : lowest, exponent = reached > lowest ? reached : lowest;
    const int steps = static_cast<int>(ldexp(rounded, digits - exponent));
    return static_cast<unsigned char>(sign | (((exponent + bias) << digits) + steps - (1 << digits)));
}

inline float from_fp8(unsigned char bits, __nv_fp8_interpretation_t kind) {
    if (kind == __NV_E5M2) return half_bits_to_float(static_cast<uint16_t>(bits << 8));
    const int code = bits & 0x7f, exponent = code >> 3, steps = exponent ? 8 + (code & 7) : code & 7;
    if (code == 0x7f) return bits_as<float>(0x7fffffffu);
    const float size = ldexpf(static_cast<float>(steps), (exponent ? exponent : 1) - 10);
    return bits & 0x80 ? -size : size;
}

inline unsigned short to_fp8x2(double x, double y, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
    return static_cast<unsigned short>(to_fp8(x, saturation, kind) | to_fp8(y, saturation, kind) << 8);
}

}  // namespace cuda_cpu

inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return cuda_cpu::to_fp8(x, s, k); }
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return cuda_cpu::to_fp8(x, s, k); }
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return cuda_cpu::to_fp8(float(__half(x)), s, k); }
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return cuda_cpu::to_fp8(float(__nv_bfloat16(x)), s, k); }
inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 v, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return cuda_cpu::to_fp8x2(v.x, v.y, s, k); }
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 v, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return cuda_cpu::to_fp8x2(v.x, v.y, s, k); }
inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t k) {
    return cuda_cpu::to_fp8x2(float(cuda_cpu::make___half(v.x)), float(cuda_cpu::make___half(v.y)), s, k);
}
inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t k) {
    return cuda_cpu::to_fp8x2(float(cuda_cpu::make___nv_bfloat16(v.x)), float(cuda_cpu::make___nv_bfloat16(v.y)), s, k);
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t k) { return __half(cuda_cpu::from_fp8(x, k)); }
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t v, __nv_fp8_interpretation_t k) {
    return {__half(cuda_cpu::from_fp8(v & 0xff, k)).__x, __half(cuda_cpu::from_fp8(v >> 8, k)).__x};
}

// As in CUDA's header every conversion is explicit and saturates.
#define CUDA_CPU_FP8(T, T2, T4, kind)                                                                                     \
    struct T {                                                                                                            \
        __nv_fp8_storage_t __x;                                                                                           \
        T() = default;                                                                                                    \
        explicit T(float x) : __x(cuda_cpu::to_fp8(x, __NV_SATFINITE, kind)) {}                                           \
        explicit T(double x) : __x(cuda_cpu::to_fp8(x, __NV_SATFINITE, kind)) {}                                          \
        explicit T(__half x) : T(float(x)) {}                                                                             \
        explicit T(__nv_bfloat16 x) : T(float(x)) {}                                                                      \
        explicit T(int x) : T(static_cast<double>(x)) {}                                                                  \
        explicit T(unsigned int x) : T(static_cast<double>(x)) {}                                                         \
        explicit T(short x) : T(static_cast<float>(x)) {}                                                                 \
        explicit T(unsigned short x) : T(static_cast<float>(x)) {}                                                        \
        explicit T(long x) : T(static_cast<double>(x)) {}                                                                 \
        explicit T(unsigned long x) : T(static_cast<double>(x)) {}                                                        \
        explicit T(long long x) : T(static_cast<double>(x)) {}                                                            \
        explicit T(unsigned long long x) : T(static_cast<double>(x)) {}                                                   \
        explicit operator float() const { return cuda_cpu::from_fp8(__x, kind); }                                         \
        explicit operator double() const { return cuda_cpu::from_fp8(__x, kind); }                                        \
        explicit operator __half() const { return __half(float(*this)); }                                                 \
        explicit operator __nv_bfloat16() const { return __nv_bfloat16(float(*this)); }                                   \
        explicit operator bool() const { return (__x & 0x7f) != 0; }                                                      \
        explicit operator int() const { return static_cast<int>(float(*this)); }                                          \
        explicit operator unsigned int() const { return static_cast<unsigned int>(float(*this)); }                        \
    };                                                                                                                    \
    struct __attribute__((aligned(2))) T2 {                                                                               \
        __nv_fp8x2_storage_t __x;                                                                                         \
        T2() = default;                                                                                                   \
        explicit T2(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, kind)) {}                                 \
        explicit T2(double2 v) : __x(__nv_cvt_double2_to_fp8x2(v, __NV_SATFINITE, kind)) {}                               \
        explicit T2(__half2 v) : __x(cuda_cpu::to_fp8x2(float(v.x), float(v.y), __NV_SATFINITE, kind)) {}                 \
        explicit T2(__nv_bfloat162 v) : __x(cuda_cpu::to_fp8x2(float(v.x), float(v.y), __NV_SATFINITE, kind)) {}          \
        explicit operator float2() const { return {cuda_cpu::from_fp8(__x & 0xff, kind), cuda_cpu::from_fp8(__x >> 8, kind)}; } \
        explicit operator __half2() const {                                                                               \
            return {__half(cuda_cpu::from_fp8(__x & 0xff, kind)), __half(cuda_cpu::from_fp8(__x >> 8, kind))};            \
        }                                                                                                                 \
    };                                                                                                                    \
    struct __attribute__((aligned(4))) T4 {                                                                               \
        __nv_fp8x4_storage_t __x;                                                                                         \
        T4() = default;                                                                                                   \
        explicit T4(float4 v) : T4(T2(float2{v.x, v.y}), T2(float2{v.z, v.w})) {}                                         \
        explicit T4(double4 v) : T4(T2(double2{v.x, v.y}), T2(double2{v.z, v.w})) {}                                      \
        explicit T4(__half2 low, __half2 high) : T4(T2(low), T2(high)) {}                                                 \
        explicit T4(__nv_bfloat162 low, __nv_bfloat162 high) : T4(T2(low), T2(high)) {}                                   \
        explicit operator float4() const {                                                                                \
            return {cuda_cpu::from_fp8(__x & 0xff, kind), cuda_cpu::from_fp8(__x >> 8 & 0xff, kind),                      \
                    cuda_cpu::from_fp8(__x >> 16 & 0xff, kind), cuda_cpu::from_fp8(__x >> 24, kind)};                     \
        }                                                                                                                 \
                                                                                                                          \
    private:                                                                                                              \
        T4(T2 low, T2 high) : __x(low.__x | static_cast<unsigned int>(high.__x) << 16) {}                                 \
    };
CUDA_CPU_FP8(__nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __NV_E4M3)
CUDA_CPU_FP8(__nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __NV_E5M2)
