// half and half2.
#pragma once

#include "cuda_on_cpu/narrow_functions.h"

CUDA_CPU_NARROW_TYPE(__half, __half2, half_bits_to_float, float_to_half_bits)

namespace cuda_cpu {
inline __half float_infinity(__half) { return make___half(0x7c00); }
}  // namespace cuda_cpu

CUDA_CPU_NARROW_ARITHMETIC(__half, __half2)
CUDA_CPU_NARROW_COMPARISONS(__half, __half2)
CUDA_CPU_NARROW_MATH(__half, __half2)
CUDA_CPU_NARROW_CONVERSIONS(__half, half)
CUDA_CPU_NARROW_DIRECTED(__half, half, float_to_half_bits, half_bits_to_float)

using half = __half;
using half2 = __half2;

#define CUDART_INF_FP16 __ushort_as_half(0x7C00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7FFF)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7BFF)
#define CUDART_ONE_FP16 __ushort_as_half(0x3C00)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)

inline __half __float2half(float x) { return __half(x); }
inline float __half2float(__half x) { return x; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline float2 __half22float2(__half2 v) { return {v.x, v.y}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }
inline __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
inline __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
inline __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
