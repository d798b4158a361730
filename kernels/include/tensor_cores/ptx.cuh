#pragma once

#include <cuda_fp16.h>

// Warp-wide matrix instructions, as PTX on the device and in plain C++ on the CPU emulator. All 32 lanes call them.
// A block of 16 lines (rows of A, or columns of B) is four registers a lane: lines g and g + 8 of the first half of the
// depth, then of the second, g = lane / 4; in each of them the lane has element pair (or tf32) number lane % 4.

__device__ inline int warp_lane() { return static_cast<int>(threadIdx.x) % 32; }

// Words that threads of other blocks, or the host, wait for. What its writer did before is there for who has read the word.

#ifdef CPU_CUDA

/// Starts to bring the line of this address to the L2; nothing waits for it.
__device__ inline void bring_to_l2(const void*) {}

__device__ inline unsigned long long load_after(const unsigned long long* word) {
    return *static_cast<const volatile unsigned long long*>(word);
}

__device__ inline void store_in_order(unsigned long long* word, unsigned long long value) {
    __threadfence();
    *static_cast<volatile unsigned long long*>(word) = value;
}

/// What stood there before.
__device__ inline unsigned long long add_in_order(unsigned long long* word, unsigned long long value) {
    __threadfence();
    const unsigned long long before = atomicAdd(word, value);
    __threadfence();
    return before;
}

__device__ inline void count_in_order(unsigned long long* word) { add_in_order(word, 1); }

/// Until the word, which only grows, is at least `least`.
__device__ inline void await_count(const unsigned long long* word, unsigned long long least) {
    while (load_after(word) < least) __nanosleep(100);
}

__device__ inline unsigned long long load_from_host(const unsigned long long* word) { return load_after(word); }

__device__ inline void store_for_host(unsigned long long* word, unsigned long long value) { store_in_order(word, value); }

#else

/// Starts to bring the line of this address to the L2; nothing waits for it.
__device__ inline void bring_to_l2(const void* global) {
    asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(global)));
}

/// The word as the instructions below name it: it lies in global memory, the device's or the host's.
__device__ inline unsigned long long global_word(const unsigned long long* word) {
    return static_cast<unsigned long long>(__cvta_generic_to_global(word));
}

__device__ inline unsigned long long load_after(const unsigned long long* word) {
    unsigned long long value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(global_word(word)) : "memory");
    return value;
}

__device__ inline void store_in_order(unsigned long long* word, unsigned long long value) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" : : "l"(global_word(word)), "l"(value) : "memory");
}

/// What stood there before.
__device__ inline unsigned long long add_in_order(unsigned long long* word, unsigned long long value) {
    unsigned long long before;
    asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;" : "=l"(before) : "l"(global_word(word)), "l"(value)
                 : "memory");
    return before;
}

/// Adds 1; what stood there before is not read.
__device__ inline void count_in_order(unsigned long long* word) {
    asm volatile("red.release.gpu.global.add.u64 [%0], 1;" : : "l"(global_word(word)) : "memory");
}

/// Until the word, which only grows, is at least `least`.
__device__ inline void await_count(const unsigned long long* word, unsigned long long least) {
    while (load_after(word) < least) {}
}

__device__ inline unsigned long long load_from_host(const unsigned long long* word) {
    unsigned long long value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(global_word(word)) : "memory");
    return value;
}

__device__ inline void store_for_host(unsigned long long* word, unsigned long long value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(global_word(word)), "l"(value) : "memory");
}

#endif

#ifdef CPU_CUDA

/// Two neighbouring 16-bit elements, or one below the other, as one register.
__device__ inline unsigned int pair_of(const unsigned short* first, int apart) {
    return first[0] | static_cast<unsigned int>(first[apart]) << 16;
}

/// 16 lines whose depth is contiguous for 8 elements: at(line, depth) is where they stand, for depth 0 and 8.
template <class At>
__device__ void load_rows(unsigned int (&r)[4], At at) {
    for (int i = 0; i < 4; ++i) r[i] = pair_of(at(warp_lane() / 4 + i % 2 * 8, i / 2 * 8) + warp_lane() % 4 * 2, 1);
}

/// 16 lines that are contiguous at each depth: `tile` holds depth after depth, `pitch` elements apart.
__device__ inline void load_turned(unsigned int (&r)[4], const unsigned short* tile, int pitch) {
    for (int i = 0; i < 4; ++i)
        r[i] = pair_of(tile + (i / 2 * 8 + warp_lane() % 4 * 2) * pitch + warp_lane() / 4 + i % 2 * 8, pitch);
}

__device__ inline unsigned int to_tf32(float x) {
    const unsigned int bits = __float_as_uint(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & ~0x1fffu;
}

struct MatrixRegisters {
    float* c;
    const unsigned int *a, *b;
};

/// e4m3: half's bits with the exponent 8 too low, but for the NaN.
CUDA_CPU_UNCHECKED float e4m3_value(unsigned int bits) {
    const unsigned int half = (bits & 0x80u) << 8 | (bits & 0x7fu) << 7;
    if ((bits & 0x7fu) == 0x7fu) return __uint_as_float(0x7fc00000u);
    return 256.0f * __half2float(__ushort_as_half(static_cast<unsigned short>(half)));
}

/// Element `e` of a register.
template <int KIND>
CUDA_CPU_UNCHECKED float element_of(unsigned int word, int e) {
    if constexpr (KIND == 2) return __uint_as_float(word);
    if constexpr (KIND == 3) return e4m3_value(word >> 8 * e & 0xffu);
    const unsigned int bits = word >> 16 * e & 0xffffu;
    if constexpr (KIND == 1) return __uint_as_float(bits << 16);
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

/// KIND 0 is half, 1 bfloat16 (16 deep), 2 tf32 (8 deep), 3 e4m3 (32 deep): the last lane to arrive computes for all.
template <int KIND>
CUDA_CPU_UNCHECKED void combine_mma(::cuda_cpu::Gathering& g) {
    constexpr int DEPTH = KIND == 2 ? 8 : KIND == 3 ? 32 : 16, HALF = DEPTH / 2, PACKED = DEPTH / 8;
    float a[16][DEPTH], b[DEPTH][8];
    for (int l = 0; l < 32; ++l) {
        const MatrixRegisters& own = *static_cast<MatrixRegisters*>(g.slots[l]);
        for (int i = 0; i < 4; ++i)
            for (int e = 0; e < PACKED; ++e) {
                const int k = i / 2 * HALF + l % 4 * PACKED + e;
                a[l / 4 + i % 2 * 8][k] = element_of<KIND>(own.a[i], e);
                if (i % 2 == 0) b[k][l / 4] = element_of<KIND>(own.b[i / 2], e);
            }
    }
    for (int l = 0; l < 32; ++l)
        for (int i = 0; i < 4; ++i) {
            float& c = static_cast<MatrixRegisters*>(g.slots[l])->c[i];
            for (int k = 0; k < DEPTH; ++k) c += a[l / 4 + i / 2 * 8][k] * b[k][l % 4 * 2 + i % 2];
        }
}

template <int KIND>
__device__ inline void multiply_lanes(float (&c)[4], const unsigned int (&a)[4], unsigned int b0, unsigned int b1,
                                     ::cuda_cpu::Site site = CUDA_CPU_CALLER) {
    const unsigned int b[2] = {b0, b1};
    MatrixRegisters registers = {c, a, b};
    ::cuda_cpu::warp_collective(~0u, "mma", &registers, combine_mma<KIND>, site);
}

__device__ inline float exp2_fast(float x) { return exp2f(x); }

__device__ inline float log2_fast(float x) { return log2f(x); }

__device__ inline float reciprocal_fast(float x) { return 1.0f / x; }

__device__ inline unsigned int to_bfloat(float x) {
    const unsigned int bits = __float_as_uint(x);
    return isnan(x) ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

__device__ inline unsigned int bfloat_pair(float low, float high) { return to_bfloat(high) << 16 | to_bfloat(low); }

#else

__device__ inline unsigned int shared_address(const void* p) {
    return static_cast<unsigned int>(__cvta_generic_to_shared(p));
}

template <class At>
__device__ void load_rows(unsigned int (&r)[4], At at) {
    const unsigned int from = shared_address(at(warp_lane() % 16, warp_lane() / 16 * 8));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}

__device__ inline void load_turned(unsigned int (&r)[4], const unsigned short* tile, int pitch) {
    const int depth = warp_lane() % 8 + warp_lane() / 16 * 8;
    const unsigned int at = shared_address(tile + depth * pitch + warp_lane() / 8 % 2 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

__device__ inline unsigned int to_tf32(float x) {
    unsigned int bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

#if __CUDA_ARCH__ < 890
/// Two e4m3, the lower or the upper pair of four, as two half: their bits with an exponent 8 higher, but for the NaN.
__device__ inline unsigned int e4m3_pair(unsigned int four, int upper) {
    const unsigned int two = __byte_perm(four, 0, upper ? 0x3424 : 0x1404);  // each as the upper byte of 16 bits
    const unsigned int bits = (two & 0x80008000u) | (two & 0x7f007f00u) >> 1;
    const __half2 values = __hmul2(*reinterpret_cast<const __half2*>(&bits), __half2half2(__float2half(256.0f)));
    const unsigned int nan = __vcmpeq2(two & 0x7f007f00u, 0x7f007f00u) & 0x7e007e00u;
    return *reinterpret_cast<const unsigned int*>(&values) | nan;
}
#endif

/// KIND 0 is half, 1 bfloat16 (16 deep), 2 tf32 (8 deep), 3 e4m3 (32 deep; as half before compute capability 8.9).
template <int KIND>
__device__ inline void multiply_lanes(float (&c)[4], const unsigned int (&a)[4], unsigned int b0, unsigned int b1) {
    if constexpr (KIND == 3) {
#if __CUDA_ARCH__ < 890
#pragma unroll
        for (int upper = 0; upper < 2; ++upper) {
            const unsigned int pairs[4] = {e4m3_pair(a[0], upper), e4m3_pair(a[1], upper), e4m3_pair(a[2], upper),
                                           e4m3_pair(a[3], upper)};
            multiply_lanes<0>(c, pairs, e4m3_pair(b0, upper), e4m3_pair(b1, upper));
        }
#else
        asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
    } else if constexpr (KIND == 0)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else if constexpr (KIND == 1)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two bfloat16, rounded to nearest even, as one register.
__device__ inline unsigned int bfloat_pair(float low, float high) {
    unsigned int pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

/// 2^x to about 2 ulp, one instruction; 0 for -inf.
__device__ inline float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/// log2(x), x normal, to 2^-22 of itself except near 1, one instruction; infinite for 0.
__device__ inline float log2_fast(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Warpgroup instructions, for compute capability 9.0 alone: 4 warps call them together and go on while they work.

#define NUMBERS_TO_31 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define NUMBERS_TO_63 \
    NUMBERS_TO_31 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, " \
    "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NUMBERS_TO_127 \
    NUMBERS_TO_63 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, " \
    "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, " \
    "%104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, " \
    "%122, %123, %124, %125, %126, %127"
#define SUMS_8(j) \
    "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3]), "+f"(sum[j + 1][0]), "+f"(sum[j + 1][1]), \
    "+f"(sum[j + 1][2]), "+f"(sum[j + 1][3])
#define SUMS_32(j) SUMS_8(j), SUMS_8(j + 2), SUMS_8(j + 4), SUMS_8(j + 6)

__device__ inline void copy_or_zero(unsigned int shared, const void* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(shared), "l"(from), "r"(inside ? 16 : 0)
                 : "memory");
}

__device__ inline float4 load_shared4(unsigned int shared) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(shared)
                 : "memory");
    return v;
}

__device__ inline void load_pair(unsigned int& first, unsigned int& second, unsigned int shared) {
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(first), "=r"(second) : "r"(shared) : "memory");
}

__device__ inline void store_pair(unsigned int shared, unsigned int first, unsigned int second) {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" : : "r"(shared), "r"(first), "r"(second) : "memory");
}

/// What this thread has written to shared memory is there for the warpgroup instructions after the next barrier.
__device__ inline void show_to_warpgroups() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

// Barriers in shared memory, of 8 bytes, on which threads need not wait where they arrive; phases are counted from 0.

__device__ inline void start_barrier(unsigned int barrier, unsigned int threads) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(threads) : "memory");
}

/// This thread arrives.
__device__ inline void arrive_at(unsigned int barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}

/// This thread arrives when the copies that it has started are done.
__device__ inline void arrive_when_copied(unsigned int barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" : : "r"(barrier) : "memory");
}

/// Until all threads have arrived for the phase of that parity; what they wrote before is there.
__device__ inline void await_phase(unsigned int barrier, unsigned int parity) {
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}"
                 : : "r"(barrier), "r"(parity) : "memory");
}

/// Before the first of a batch of instructions: what the registers hold is what was put there.
__device__ inline void open_batch() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }

__device__ inline void close_batch() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }

/// What follows happens after these registers got their values.
template <int N>
__device__ inline void settle(float (&sum)[N][4]) {
#pragma unroll
    for (int j = 0; j < N; ++j)
        asm volatile("" : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3]) : : "memory");
}

/// Until all batches but the last have finished.
__device__ inline void wait_for_earlier_batches() { asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory"); }

/// Until all batches but the last PENDING have finished, those that give `sum` among them: it is not read before.
template <int PENDING, int N>
__device__ inline void wait_for_batches(float (&sum)[N][4]) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(PENDING) : "memory");
    settle(sum);
}

/// An operand in shared memory, in rows of 128 bytes of which each 16-byte piece p of row r stands at p ^ r % 8; 8 rows
/// follow each other in 1024 bytes. A row is a line's depth, or 64 lines at one depth, the next 64 `apart` bytes on.
__device__ inline unsigned long long operand_at(unsigned int shared, unsigned int apart) {
    constexpr unsigned long long SWIZZLED = 1ull << 62, EIGHT_ROWS = 1024 / 16;
    return SWIZZLED | EIGHT_ROWS << 32 | static_cast<unsigned long long>(apart / 16) << 16 | (shared & 0x3ffff) / 16;
}

/// The same operand, `bytes` further on.
__device__ inline unsigned long long moved(unsigned long long operand, unsigned int bytes) {
    return operand + bytes / 16;
}

#define WGMMA(columns, type) \
    "{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type
#define MULTIPLY_256(type) \
    asm volatile(WGMMA("256", type) " {" NUMBERS_TO_127 "}, %128, %129, p, 1, 1, %130, %131;}" \
                 : SUMS_32(0), SUMS_32(8), SUMS_32(16), SUMS_32(24) \
                 : "l"(a), "l"(b), "n"(!LEFT_ALONG), "n"(!RIGHT_ALONG))

/// sum += a b: 64 rows, 256 columns, 16 deep; KIND 0 is half, 1 bfloat16. Warp w of the four has rows 16 w to
/// 16 w + 15, blocks of 8 columns in `sum` as multiply_lanes has them. ALONG says that rows of the operand are depth.
template <int KIND, bool LEFT_ALONG, bool RIGHT_ALONG>
__device__ inline void multiply_warpgroup(float (&sum)[32][4], unsigned long long a, unsigned long long b) {
    if constexpr (KIND == 0) MULTIPLY_256("f16");
    else MULTIPLY_256("bf16");
}

/// sum += a b, 8 deep, in TF32: a in registers (as multiply_lanes has it, 16 rows a warp), b's columns are depth. Bits
/// beyond TF32 are cut off.
__device__ inline void multiply_turned_step(float (&sum)[32][4], const unsigned int (&a)[4], unsigned long long b) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {"
                 NUMBERS_TO_127 "}, {%128, %129, %130, %131}, %132, p, 1, 1;}"
                 : SUMS_32(0), SUMS_32(8), SUMS_32(16), SUMS_32(24)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#define MULTIPLY_SCORES(type) \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type \
                 " {" NUMBERS_TO_63 "}, %64, %65, p, 1, 1, 0, 0;}" \
                 : SUMS_32(0), SUMS_32(8) : "l"(a), "l"(b), "n"(!FIRST))
#define MULTIPLY_WEIGHTED_128(type) \
    asm volatile(WGMMA("128", type) " {" NUMBERS_TO_63 "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;}" \
                 : SUMS_32(0), SUMS_32(8) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define MULTIPLY_WEIGHTED_64(type) \
    asm volatile(WGMMA("64", type) " {" NUMBERS_TO_31 "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;}" \
                 : SUMS_32(0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

/// scores = (first ? 0 : scores) + a b: 64 rows, 128 columns, 16 deep; rows of both are depth.
template <int KIND, bool FIRST>
__device__ inline void multiply_scores(float (&sum)[16][4], unsigned long long a, unsigned long long b) {
    if constexpr (KIND == 0) MULTIPLY_SCORES("f16");
    else MULTIPLY_SCORES("bf16");
}

/// sum += a b, 16 deep, with a in registers (as multiply_lanes has it, 16 rows a warp); rows of b are columns.
template <int KIND>
__device__ inline void multiply_weighted(float (&sum)[16][4], const unsigned int (&a)[4], unsigned long long b) {
    if constexpr (KIND == 0) MULTIPLY_WEIGHTED_128("f16");
    else MULTIPLY_WEIGHTED_128("bf16");
}

template <int KIND>
__device__ inline void multiply_weighted(float (&sum)[8][4], const unsigned int (&a)[4], unsigned long long b) {
    if constexpr (KIND == 0) MULTIPLY_WEIGHTED_64("f16");
    else MULTIPLY_WEIGHTED_64("bf16");
}

/// sum = (fresh ? 0 : sum) + a b, 16 deep, of bfloat16: a in registers, b's rows are depth.
__device__ inline void multiply_thirds(float (&sum)[16][4], const unsigned int (&a)[4], unsigned long long b, bool fresh) {
    asm volatile("{.reg .pred p; setp.eq.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 NUMBERS_TO_63 "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;}"
                 : SUMS_32(0), SUMS_32(8)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(fresh)));
}

#undef MULTIPLY_SCORES
#undef MULTIPLY_WEIGHTED_128
#undef MULTIPLY_WEIGHTED_64
#undef MULTIPLY_256
#undef WGMMA

/// 1 / x within an ulp, one instruction; x and 1 / x are normal, neither subnormal nor infinite.
__device__ inline float reciprocal_fast(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif

/// 16 lines whose depth is contiguous: `tile` holds line after line, `pitch` elements apart.
__device__ inline void load_lines(unsigned int (&r)[4], const unsigned short* tile, int pitch) {
    load_rows(r, [=](int line, int depth) { return tile + line * pitch + depth; });
}
