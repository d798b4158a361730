// bfloat16 and its pair.
#pragma once

#include "cuda_on_cpu/narrow_functions.h"

CUDA_CPU_NARROW_TYPE(__nv_bfloat16, __nv_bfloat162, bfloat_bits_to_float, float_to_bfloat_bits)

namespace cuda_cpu {
inline __nv_bfloat16 float_infinity(__nv_bfloat16) { return make___nv_bfloat16(0x7f80); }
}  // namespace cuda_cpu

CUDA_CPU_NARROW_ARITHMETIC(__nv_bfloat16, __nv_bfloat162)
CUDA_CPU_NARROW_COMPARISONS(__nv_bfloat16, __nv_bfloat162)
CUDA_CPU_NARROW_MATH(__nv_bfloat16, __nv_bfloat162)
CUDA_CPU_NARROW_CONVERSIONS(__nv_bfloat16, bfloat16)
CUDA_CPU_NARROW_DIRECTED(__nv_bfloat16, bfloat16, float_to_bfloat_bits, bfloat_bits_to_float)

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7F80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7FFF)

inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
inline __nv_bfloat162 __float2bfloat162_rn(float x) { return {__nv_bfloat16(x), __nv_bfloat16(x)}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {__nv_bfloat16(v.x), __nv_bfloat16(v.y)}; }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {v.x, v.y}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
inline float __low2float(__nv_bfloat162 v) { return v.x; }
inline float __high2float(__nv_bfloat162 v) { return v.y; }
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return {v.x, v.x}; }
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return {v.y, v.y}; }
inline __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 v) { return {v.y, v.x}; }
