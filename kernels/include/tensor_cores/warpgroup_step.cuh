#pragma once

#include "tensor_cores/ptx.cuh"
#include "tensor_cores/tensor_tile.cuh"

// One step of a product by warpgroup instructions, for tiles of several widths, that may begin a sum.

#ifndef CPU_CUDA

#define NUMBERS_TO_95 \
    NUMBERS_TO_63 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, " \
    "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define STEP_OF(type, columns, numbers, keep, a, b, turn_a, turn_b) \
    "{.reg .pred p; setp.ne.b32 p, " keep ", 0; wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type \
    " {" numbers "}, " a ", " b ", p, 1, 1, " turn_a ", " turn_b ";}"
#define OPERANDS : "l"(a), "l"(b), "r"(keep), "n"(!LEFT_ALONG), "n"(!RIGHT_ALONG)
#define STEP_256(type) asm volatile(STEP_OF(type, "256", NUMBERS_TO_127, "%130", "%128", "%129", "%131", "%132") \
                                    : SUMS_32(0), SUMS_32(8), SUMS_32(16), SUMS_32(24) OPERANDS)
#define STEP_192(type) asm volatile(STEP_OF(type, "192", NUMBERS_TO_95, "%98", "%96", "%97", "%99", "%100") \
                                    : SUMS_32(0), SUMS_32(8), SUMS_32(16) OPERANDS)
#define STEP_128(type) asm volatile(STEP_OF(type, "128", NUMBERS_TO_63, "%66", "%64", "%65", "%67", "%68") \
                                    : SUMS_32(0), SUMS_32(8) OPERANDS)

#define BYTES_OF(columns, numbers, keep, a, b) \
    "{.reg .pred p; setp.ne.b32 p, " keep ", 0; wgmma.mma_async.sync.aligned.m64n" columns "k32.f32.e4m3.e4m3 {" \
    numbers "}, " a ", " b ", p, 1, 1;}"
/// The same of e4m3, 32 deep; rows of both operands are depth.
template <int N>
__device__ inline void multiply_bytes(float (&sum)[N][4], unsigned long long a, unsigned long long b, int keep) {
    if constexpr (N == 32)
        asm volatile(BYTES_OF("256", NUMBERS_TO_127, "%130", "%128", "%129")
                     : SUMS_32(0), SUMS_32(8), SUMS_32(16), SUMS_32(24) : "l"(a), "l"(b), "r"(keep));
    else if constexpr (N == 24)
        asm volatile(BYTES_OF("192", NUMBERS_TO_95, "%98", "%96", "%97")
                     : SUMS_32(0), SUMS_32(8), SUMS_32(16) : "l"(a), "l"(b), "r"(keep));
    else
        asm volatile(BYTES_OF("128", NUMBERS_TO_63, "%66", "%64", "%65")
                     : SUMS_32(0), SUMS_32(8) : "l"(a), "l"(b), "r"(keep));
}

/// sum = (keep ? sum : 0) + a b: 64 rows, 8 N columns, 16 deep; KIND and ALONG as in multiply_warpgroup.
template <int KIND, bool LEFT_ALONG, bool RIGHT_ALONG, int N>
__device__ inline void multiply_step(float (&sum)[N][4], unsigned long long a, unsigned long long b, int keep) {
    static_assert(N == 32 || N == 24 || N == 16);
    if constexpr (KIND == Float8::KIND) return multiply_bytes(sum, a, b, keep);
    if constexpr (N == 32 && KIND == 0) STEP_256("f16");
    else if constexpr (N == 32) STEP_256("bf16");
    else if constexpr (N == 24 && KIND == 0) STEP_192("f16");
    else if constexpr (N == 24) STEP_192("bf16");
    else if constexpr (KIND == 0) STEP_128("f16");
    else STEP_128("bf16");
}

#undef STEP_256
#undef STEP_192
#undef STEP_128
#undef OPERANDS
#undef STEP_OF
#undef BYTES_OF

#endif
