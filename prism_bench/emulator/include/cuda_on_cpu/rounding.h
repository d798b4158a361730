// Intrinsics that name their rounding: arithmetic (rn, rz, ru, rd) and conversions, which saturate as the device does.
#pragma once

#include <fenv.h>
#include <math.h>

namespace cuda_cpu {

struct Rounding {
    int before = fegetround();
    explicit Rounding(int mode) { fesetround(mode); }
    ~Rounding() { fesetround(before); }
};

// Volatile operands keep the compiler from evaluating at compile time, or before the mode is set.
template <int mode, typename T, typename Operation>
inline T rounded(Operation operation, T a, T b = T(), T c = T()) {
    volatile T va = a, vb = b, vc = c;
    Rounding rounding(mode);
    volatile T result = operation(va, vb, vc);
    return result;
}

// Out of range gives the nearest integer there is; NaN gives 0 in 32 bits, the top bit alone in 64.
template <typename To, typename From>
inline To saturated(From x) {
    constexpr bool is_wide = sizeof(To) == 8 || sizeof(From) == 8, is_signed = To(-1) < To(0);
    constexpr To lowest = is_signed ? To(To(1) << (8 * sizeof(To) - 1)) : To(0);
    constexpr To highest = To(~lowest);
    if (x != x) return is_wide ? To(To(1) << (8 * sizeof(To) - 1)) : To(0);
    if (x >= static_cast<From>(highest)) return highest;
    if (x <= static_cast<From>(lowest)) return lowest;
    return static_cast<To>(x);
}

}  // namespace cuda_cpu

#define CUDA_CPU_ARITHMETIC(prefix, T, suffix, mode)                                                                            \
    inline T prefix##add_##suffix(T a, T b) { return cuda_cpu::rounded<mode>([](T x, T y, T) { return x + y; }, a, b); }        \
    inline T prefix##sub_##suffix(T a, T b) { return cuda_cpu::rounded<mode>([](T x, T y, T) { return x - y; }, a, b); }        \
    inline T prefix##mul_##suffix(T a, T b) { return cuda_cpu::rounded<mode>([](T x, T y, T) { return x * y; }, a, b); }        \
    inline T prefix##div_##suffix(T a, T b) { return cuda_cpu::rounded<mode>([](T x, T y, T) { return x / y; }, a, b); }        \
    inline T prefix##rcp_##suffix(T a) { return cuda_cpu::rounded<mode>([](T x, T, T) { return T(1) / x; }, a); }               \
    inline T prefix##sqrt_##suffix(T a) { return cuda_cpu::rounded<mode>([](T x, T, T) { return T(sqrt(x)); }, a); }
#define CUDA_CPU_NEAREST(prefix, T)                          \
    inline T prefix##add_rn(T a, T b) { return a + b; }      \
    inline T prefix##sub_rn(T a, T b) { return a - b; }      \
    inline T prefix##mul_rn(T a, T b) { return a * b; }      \
    inline T prefix##div_rn(T a, T b) { return a / b; }      \
    inline T prefix##rcp_rn(T a) { return T(1) / a; }        \
    inline T prefix##sqrt_rn(T a) { return T(sqrt(a)); }
CUDA_CPU_NEAREST(__f, float)
CUDA_CPU_NEAREST(__d, double)
CUDA_CPU_ARITHMETIC(__f, float, rz, FE_TOWARDZERO)
CUDA_CPU_ARITHMETIC(__f, float, ru, FE_UPWARD)
CUDA_CPU_ARITHMETIC(__f, float, rd, FE_DOWNWARD)
CUDA_CPU_ARITHMETIC(__d, double, rz, FE_TOWARDZERO)
CUDA_CPU_ARITHMETIC(__d, double, ru, FE_UPWARD)
CUDA_CPU_ARITHMETIC(__d, double, rd, FE_DOWNWARD)
#undef CUDA_CPU_ARITHMETIC
#undef CUDA_CPU_NEAREST

inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
#define CUDA_CPU_FMA(suffix, mode)                                                                                                       \
    inline float __fmaf_##suffix(float a, float b, float c) { return cuda_cpu::rounded<mode>([](float x, float y, float z) { return fmaf(x, y, z); }, a, b, c); } \
    inline double __fma_##suffix(double a, double b, double c) { return cuda_cpu::rounded<mode>([](double x, double y, double z) { return fma(x, y, z); }, a, b, c); }
CUDA_CPU_FMA(rz, FE_TOWARDZERO)
CUDA_CPU_FMA(ru, FE_UPWARD)
CUDA_CPU_FMA(rd, FE_DOWNWARD)
#undef CUDA_CPU_FMA

inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / sqrt(static_cast<double>(x))); }

#define CUDA_CPU_TO_INTEGER(From, from, To, to)                                                       \
    inline To __##from##2##to##_rn(From x) { return cuda_cpu::saturated<To>(nearbyint(x)); }          \
    inline To __##from##2##to##_rz(From x) { return cuda_cpu::saturated<To>(trunc(x)); }              \
    inline To __##from##2##to##_ru(From x) { return cuda_cpu::saturated<To>(ceil(x)); }               \
    inline To __##from##2##to##_rd(From x) { return cuda_cpu::saturated<To>(floor(x)); }
CUDA_CPU_TO_INTEGER(float, float, int, int)
CUDA_CPU_TO_INTEGER(float, float, unsigned int, uint)
CUDA_CPU_TO_INTEGER(float, float, long long, ll)
CUDA_CPU_TO_INTEGER(float, float, unsigned long long, ull)
CUDA_CPU_TO_INTEGER(double, double, int, int)
CUDA_CPU_TO_INTEGER(double, double, unsigned int, uint)
CUDA_CPU_TO_INTEGER(double, double, long long, ll)
CUDA_CPU_TO_INTEGER(double, double, unsigned long long, ull)
#undef CUDA_CPU_TO_INTEGER

#define CUDA_CPU_FROM_ONE(From, from, To, to, suffix, mode)                     \
    inline To __##from##2##to##_##suffix(From x) {                              \
        volatile From operand = x;                                              \
        cuda_cpu::Rounding rounding(mode);                                      \
        volatile To result = static_cast<To>(operand);                          \
        return result;                                                          \
    }
#define CUDA_CPU_FROM_INTEGER(From, from, To, to)                                   \
    inline To __##from##2##to##_rn(From x) { return static_cast<To>(x); }           \
    CUDA_CPU_FROM_ONE(From, from, To, to, rz, FE_TOWARDZERO)                        \
    CUDA_CPU_FROM_ONE(From, from, To, to, ru, FE_UPWARD)                            \
    CUDA_CPU_FROM_ONE(From, from, To, to, rd, FE_DOWNWARD)
CUDA_CPU_FROM_INTEGER(int, int, float, float)
CUDA_CPU_FROM_INTEGER(unsigned int, uint, float, float)
CUDA_CPU_FROM_INTEGER(long long, ll, float, float)
CUDA_CPU_FROM_INTEGER(unsigned long long, ull, float, float)
CUDA_CPU_FROM_INTEGER(long long, ll, double, double)
CUDA_CPU_FROM_INTEGER(unsigned long long, ull, double, double)
CUDA_CPU_FROM_INTEGER(double, double, float, float)
#undef CUDA_CPU_FROM_INTEGER
#undef CUDA_CPU_FROM_ONE
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned int x) { return x; }
