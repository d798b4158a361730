// CUDA's mathematical functions that the C library lacks, and the fast ones, which here are exact to their type.
#pragma once

#include <math.h>
#include <stdlib.h>

#include <cmath>

#include "vector_types.h"

#ifndef CUDART_INF_F
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_nan("")
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931e+0
#endif

// A maximum of numbers ignores NaN, as the device's does.
#define CUDA_CPU_EXTREMES(A, B, T)                                                     \
    inline T max(A a, B b) { return static_cast<T>(a) > static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b); } \
    inline T min(A a, B b) { return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b); }
CUDA_CPU_EXTREMES(int, int, int)
CUDA_CPU_EXTREMES(unsigned int, unsigned int, unsigned int)
CUDA_CPU_EXTREMES(int, unsigned int, unsigned int)
CUDA_CPU_EXTREMES(unsigned int, int, unsigned int)
CUDA_CPU_EXTREMES(long, long, long)
CUDA_CPU_EXTREMES(unsigned long, unsigned long, unsigned long)
CUDA_CPU_EXTREMES(long, unsigned long, unsigned long)
CUDA_CPU_EXTREMES(unsigned long, long, unsigned long)
CUDA_CPU_EXTREMES(long long, long long, long long)
CUDA_CPU_EXTREMES(unsigned long long, unsigned long long, unsigned long long)
CUDA_CPU_EXTREMES(long long, unsigned long long, unsigned long long)
CUDA_CPU_EXTREMES(unsigned long long, long long, unsigned long long)
#undef CUDA_CPU_EXTREMES
inline float max(float a, float b) { return fmaxf(a, b); }
inline float min(float a, float b) { return fminf(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double max(double a, float b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline unsigned int umax(unsigned int a, unsigned int b) { return max(a, b); }
inline unsigned int umin(unsigned int a, unsigned int b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }

inline float __saturatef(float x) { return x >= 1.0f ? 1.0f : x > 0.0f ? x : 0.0f; }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __exp2f(float x) { return exp2f(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline void __sincosf(float x, float* s, float* c) {
    *s = sinf(x);
    *c = cosf(x);
}

inline float rsqrtf(float x) { return static_cast<float>(1.0 / sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return static_cast<float>(1.0 / cbrt(static_cast<double>(x))); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }

namespace cuda_cpu {

constexpr double pi = 3.14159265358979323846;

// sin and cos of pi x: the argument is reduced exactly before pi is multiplied in.
inline double sine_of_pi(double x) {
    if (!(fabs(x) < 1e300)) return x - x;
    const double r = x - 2.0 * floor(x / 2.0);
    if (r == 0.0 || r == 1.0) return copysign(0.0, x);
    return r <= 0.5 ? sin(pi * r) : r <= 1.5 ? sin(pi * (1.0 - r)) : sin(pi * (r - 2.0));
}
inline double cosine_of_pi(double x) {
    if (!(fabs(x) < 1e300)) return x - x;
    const double r = fabs(x) - 2.0 * floor(fabs(x) / 2.0);
    if (r == 0.5 || r == 1.5) return 0.0;
    return r <= 0.25 ? cos(pi * r) : r <= 0.75 ? sin(pi * (0.5 - r)) : r <= 1.25 ? -cos(pi * (1.0 - r)) : r <= 1.75 ? sin(pi * (r - 1.5)) : cos(pi * (2.0 - r));
}

double inverse_erf(double x);
double inverse_erfc(double x);
double scaled_erfc(double x);

}  // namespace cuda_cpu

inline double sinpi(double x) { return cuda_cpu::sine_of_pi(x); }
inline double cospi(double x) { return cuda_cpu::cosine_of_pi(x); }
inline float sinpif(float x) { return static_cast<float>(cuda_cpu::sine_of_pi(x)); }
inline float cospif(float x) { return static_cast<float>(cuda_cpu::cosine_of_pi(x)); }
inline void sincospif(float x, float* s, float* c) {
    *s = sinpif(x);
    *c = cospif(x);
}
inline void sincospi(double x, double* s, double* c) {
    *s = sinpi(x);
    *c = cospi(x);
}

inline double erfinv(double x) { return cuda_cpu::inverse_erf(x); }
inline float erfinvf(float x) { return static_cast<float>(cuda_cpu::inverse_erf(x)); }
inline double erfcinv(double x) { return cuda_cpu::inverse_erfc(x); }
inline float erfcinvf(float x) { return static_cast<float>(cuda_cpu::inverse_erfc(x)); }
inline double erfcx(double x) { return cuda_cpu::scaled_erfc(x); }
inline float erfcxf(float x) { return static_cast<float>(cuda_cpu::scaled_erfc(x)); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
inline float normcdff(float x) { return static_cast<float>(normcdf(static_cast<double>(x))); }
inline double normcdfinv(double p) { return -1.41421356237309504880 * cuda_cpu::inverse_erfc(2.0 * p); }
inline float normcdfinvf(float p) { return static_cast<float>(normcdfinv(static_cast<double>(p))); }

double cyl_bessel_i0(double x);
double cyl_bessel_i1(double x);
inline float cyl_bessel_i0f(float x) { return static_cast<float>(cyl_bessel_i0(x)); }
inline float cyl_bessel_i1f(float x) { return static_cast<float>(cyl_bessel_i1(x)); }

inline double norm3d(double a, double b, double c) { return hypot(hypot(a, b), c); }
inline float norm3df(float a, float b, float c) { return static_cast<float>(sqrt(double(a) * a + double(b) * b + double(c) * c)); }
inline float norm4df(float a, float b, float c, float d) { return static_cast<float>(sqrt(double(a) * a + double(b) * b + double(c) * c + double(d) * d)); }
inline float rnorm3df(float a, float b, float c) { return static_cast<float>(1.0 / sqrt(double(a) * a + double(b) * b + double(c) * c)); }
inline float rhypotf(float a, float b) { return static_cast<float>(1.0 / sqrt(double(a) * a + double(b) * b)); }
inline double rhypot(double a, double b) { return 1.0 / hypot(a, b); }
