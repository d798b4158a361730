// The functions that half and bfloat16 share by name: arithmetic, comparison, mathematics, each also for pairs.
#pragma once

#include "atomics.h"
#include "math_functions.h"
#include "narrow_type.h"
#include "rounding.h"

#define CUDA_CPU_NARROW_ARITHMETIC(T, T2)                                                                                   \
    CUDA_CPU_NARROW_BINARY(T, T2, __hadd, __hadd2, a + b)                                                                   \
    CUDA_CPU_NARROW_BINARY(T, T2, __hsub, __hsub2, a - b)                                                                   \
    CUDA_CPU_NARROW_BINARY(T, T2, __hmul, __hmul2, a * b)                                                                   \
    CUDA_CPU_NARROW_BINARY(T, T2, __hadd_rn, __hadd2_rn, a + b)                                                             \
    CUDA_CPU_NARROW_BINARY(T, T2, __hsub_rn, __hsub2_rn, a - b)                                                             \
    CUDA_CPU_NARROW_BINARY(T, T2, __hmul_rn, __hmul2_rn, a * b)                                                             \
    CUDA_CPU_NARROW_BINARY(T, T2, __hdiv, __h2div, a / b)                                                                   \
    CUDA_CPU_NARROW_BINARY(T, T2, __hadd_sat, __hadd2_sat, T(__saturatef(a + b)))                                           \
    CUDA_CPU_NARROW_BINARY(T, T2, __hsub_sat, __hsub2_sat, T(__saturatef(a - b)))                                           \
    CUDA_CPU_NARROW_BINARY(T, T2, __hmul_sat, __hmul2_sat, T(__saturatef(a * b)))                                           \
    CUDA_CPU_NARROW_BINARY(T, T2, __hmax, __hmax2, T(cuda_cpu::largest_number(a, b)))                                       \
    CUDA_CPU_NARROW_BINARY(T, T2, __hmin, __hmin2, T(cuda_cpu::smallest_number(a, b)))                                      \
    CUDA_CPU_NARROW_BINARY(T, T2, __hmax_nan, __hmax2_nan, (a != a || b != b) ? cuda_cpu::make_##T(0x7fff) : __hmax(a, b))  \
    CUDA_CPU_NARROW_BINARY(T, T2, __hmin_nan, __hmin2_nan, (a != a || b != b) ? cuda_cpu::make_##T(0x7fff) : __hmin(a, b))  \
    inline T __hfma(T a, T b, T c) { return cuda_cpu::fused(a, b, c); }                                                     \
    inline T __hfma_sat(T a, T b, T c) { return T(__saturatef(__hfma(a, b, c))); }                                          \
    inline T __hfma_relu(T a, T b, T c) { return __hmax_nan(__hfma(a, b, c), T(0.0f)); }                                    \
    inline T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }                          \
    inline T2 __hfma2_sat(T2 a, T2 b, T2 c) { return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)}; }              \
    inline T2 __hfma2_relu(T2 a, T2 b, T2 c) { return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)}; }           \
    inline T __hneg(T a) { return -a; }                                                                                     \
    inline T2 __hneg2(T2 a) { return -a; }                                                                                  \
    inline T __habs(T a) { return cuda_cpu::make_##T(static_cast<unsigned short>(a.__x & 0x7fff)); }                        \
    inline T2 __habs2(T2 a) { return {__habs(a.x), __habs(a.y)}; }                                                          \
    inline T atomicAdd(T* address, T value, cuda_cpu::Site site = CUDA_CPU_CALLER) {                                        \
        return cuda_cpu::atomic_change(address, [value](T old) { return old + value; }, site);                              \
    }                                                                                                                       \
    inline T2 atomicAdd(T2* address, T2 value, cuda_cpu::Site site = CUDA_CPU_CALLER) {                                     \
        return cuda_cpu::atomic_change(address, [value](T2 old) { return old + value; }, site);                             \
    }

#define CUDA_CPU_NARROW_BINARY(T, T2, name, name2, expression)       \
    inline T name(T a, T b) { return expression; }                   \
    inline T2 name2(T2 a, T2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }

// Ordered comparisons are false where a NaN takes part, the ones that end in u are true.
#define CUDA_CPU_NARROW_COMPARISON(T, T2, word, sign)                                                           \
    inline bool __h##word(T a, T b) { return float(a) sign float(b) && a == a && b == b; }                      \
    inline bool __h##word##u(T a, T b) { return float(a) sign float(b) || a != a || b != b; }                   \
    inline T2 __h##word##2(T2 a, T2 b) { return {T(float(__h##word(a.x, b.x))), T(float(__h##word(a.y, b.y)))}; } \
    inline T2 __h##word##u2(T2 a, T2 b) { return {T(float(__h##word##u(a.x, b.x))), T(float(__h##word##u(a.y, b.y)))}; } \
    inline bool __hb##word##2(T2 a, T2 b) { return __h##word(a.x, b.x) && __h##word(a.y, b.y); }                \
    inline bool __hb##word##u2(T2 a, T2 b) { return __h##word##u(a.x, b.x) && __h##word##u(a.y, b.y); }
#define CUDA_CPU_NARROW_COMPARISONS(T, T2)            \
    CUDA_CPU_NARROW_COMPARISON(T, T2, eq, ==)         \
    CUDA_CPU_NARROW_COMPARISON(T, T2, ne, !=)         \
    CUDA_CPU_NARROW_COMPARISON(T, T2, lt, <)          \
    CUDA_CPU_NARROW_COMPARISON(T, T2, le, <=)         \
    CUDA_CPU_NARROW_COMPARISON(T, T2, gt, >)          \
    CUDA_CPU_NARROW_COMPARISON(T, T2, ge, >=)         \
    inline bool __hisnan(T a) { return a != a; }      \
    inline int __hisinf(T a) { return (a.__x & 0x7fff) == cuda_cpu::float_infinity(a).__x ? (a.__x & 0x8000 ? -1 : 1) : 0; } \
    inline T2 __hisnan2(T2 a) { return {T(float(a.x != a.x)), T(float(a.y != a.y))}; }

// Evaluated in float and rounded once more.
#define CUDA_CPU_NARROW_FUNCTION(T, T2, name, name2, function) \
    inline T name(T a) { return T(function(float(a))); }       \
    inline T2 name2(T2 a) { return {name(a.x), name(a.y)}; }
#define CUDA_CPU_NARROW_MATH(T, T2)                              \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hexp, h2exp, expf)           \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hexp2, h2exp2, exp2f)        \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hexp10, h2exp10, exp10f)     \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hlog, h2log, logf)           \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hlog2, h2log2, log2f)        \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hlog10, h2log10, log10f)     \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hsqrt, h2sqrt, sqrtf)        \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hrsqrt, h2rsqrt, rsqrtf)     \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hrcp, h2rcp, __frcp_rn)      \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hsin, h2sin, sinf)           \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hcos, h2cos, cosf)           \
    CUDA_CPU_NARROW_FUNCTION(T, T2, htanh, h2tanh, tanhf)        \
    CUDA_CPU_NARROW_FUNCTION(T, T2, htanh_approx, h2tanh_approx, tanhf) \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hfloor, h2floor, floorf)     \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hceil, h2ceil, ceilf)        \
    CUDA_CPU_NARROW_FUNCTION(T, T2, htrunc, h2trunc, truncf)     \
    CUDA_CPU_NARROW_FUNCTION(T, T2, hrint, h2rint, rintf)

// Conversions whose names follow one pattern: `half` or `bfloat16` stands for word.
#define CUDA_CPU_NARROW_CONVERSIONS(T, word)                                                                                \
    inline T __float2##word##_rn(float x) { return T(x); }                                                                  \
    inline T __double2##word(double x) { return T(x); }                                                                     \
    inline int __##word##2int_rn(T x) { return __float2int_rn(x); }                                                         \
    inline int __##word##2int_rz(T x) { return __float2int_rz(x); }                                                         \
    inline int __##word##2int_ru(T x) { return __float2int_ru(x); }                                                         \
    inline int __##word##2int_rd(T x) { return __float2int_rd(x); }                                                         \
    inline unsigned int __##word##2uint_rn(T x) { return __float2uint_rn(x); }                                              \
    inline unsigned int __##word##2uint_rz(T x) { return __float2uint_rz(x); }                                              \
    inline short __##word##2short_rn(T x) { return cuda_cpu::saturated<short>(nearbyintf(x)); }                             \
    inline short __##word##2short_rz(T x) { return cuda_cpu::saturated<short>(truncf(x)); }                                 \
    inline unsigned short __##word##2ushort_rn(T x) { return cuda_cpu::saturated<unsigned short>(nearbyintf(x)); }          \
    inline T __int2##word##_rn(int x) { return T(x); }                                                                      \
    inline T __uint2##word##_rn(unsigned int x) { return T(x); }                                                            \
    inline T __short2##word##_rn(short x) { return T(x); }                                                                  \
    inline T __ushort2##word##_rn(unsigned short x) { return T(x); }                                                        \
    inline T __ll2##word##_rn(long long x) { return T(x); }                                                                 \
    inline short __##word##_as_short(T x) { return static_cast<short>(x.__x); }                                             \
    inline unsigned short __##word##_as_ushort(T x) { return x.__x; }                                                       \
    inline T __short_as_##word(short x) { return cuda_cpu::make_##T(static_cast<unsigned short>(x)); }                      \
    inline T __ushort_as_##word(unsigned short x) { return cuda_cpu::make_##T(x); }

#define CUDA_CPU_NARROW_DIRECTED(T, word, to_bits, to_float)                                                                                      \
    inline T __float2##word##_rz(float x) { return cuda_cpu::make_##T(cuda_cpu::directed<cuda_cpu::to_bits, cuda_cpu::to_float>(x, 0)); }         \
    inline T __float2##word##_ru(float x) { return cuda_cpu::make_##T(cuda_cpu::directed<cuda_cpu::to_bits, cuda_cpu::to_float>(x, 1)); }         \
    inline T __float2##word##_rd(float x) { return cuda_cpu::make_##T(cuda_cpu::directed<cuda_cpu::to_bits, cuda_cpu::to_float>(x, -1)); }
