// Integer intrinsics: bits, bytes, high products, dot products, and reinterpretation.
#pragma once

#include <stdint.h>
#include <string.h>

inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }

inline unsigned int __brev(unsigned int x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
    return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 | __brev(static_cast<unsigned>(x >> 32));
}

// Picks four of the eight bytes of (y, x). Unlike PTX's prmt, the intrinsic ignores bit 3 of a selector.
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
    const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
    unsigned int result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned pick = selector >> (4 * i) & 7;
        result |= (static_cast<unsigned>(bytes >> (8 * pick)) & 0xff) << (8 * i);
    }
    return result;
}

inline unsigned int __funnelshift_l(unsigned int lo, unsigned int hi, unsigned int shift) {
    return static_cast<unsigned>((static_cast<uint64_t>(hi) << 32 | lo) << (shift & 31) >> 32);
}
inline unsigned int __funnelshift_r(unsigned int lo, unsigned int hi, unsigned int shift) {
    return static_cast<unsigned>((static_cast<uint64_t>(hi) << 32 | lo) >> (shift & 31));
}
inline unsigned int __funnelshift_lc(unsigned int lo, unsigned int hi, unsigned int shift) {
    return shift >= 32 ? lo : __funnelshift_l(lo, hi, shift);
}
inline unsigned int __funnelshift_rc(unsigned int lo, unsigned int hi, unsigned int shift) {
    return shift >= 32 ? hi : __funnelshift_r(lo, hi, shift);
}

inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
inline unsigned int __umulhi(unsigned int a, unsigned int b) { return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return static_cast<long long>(static_cast<__int128>(a) * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __mul24(int a, int b) {
    const auto low = [](int x) { return static_cast<int64_t>(static_cast<int>(static_cast<unsigned>(x) << 8) >> 8); };
    return static_cast<int>(low(a) * low(b));
}
inline unsigned int __umul24(unsigned int a, unsigned int b) { return (a & 0xffffffu) * (b & 0xffffffu); }

inline unsigned int __sad(int a, int b, unsigned int sum) {
    const int64_t difference = static_cast<int64_t>(a) - b;
    return sum + static_cast<unsigned>(difference < 0 ? -difference : difference);
}
inline unsigned int __usad(unsigned int a, unsigned int b, unsigned int sum) { return sum + (a > b ? a - b : b - a); }
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<int64_t>(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((static_cast<int64_t>(a) + b + 1) >> 1); }
inline unsigned int __uhadd(unsigned int a, unsigned int b) { return static_cast<unsigned>((static_cast<uint64_t>(a) + b) >> 1); }
inline unsigned int __urhadd(unsigned int a, unsigned int b) { return static_cast<unsigned>((static_cast<uint64_t>(a) + b + 1) >> 1); }

namespace cuda_cpu {

template <typename To, typename From>
inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "reinterpretation keeps the size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

template <typename Byte, typename Word>
inline Word dot_bytes(Word a, Word b, Word sum) {
    unsigned total = static_cast<unsigned>(sum);  // which may wrap
    for (int i = 0; i < 4; ++i) total += static_cast<unsigned>(static_cast<Byte>(a >> (8 * i)) * static_cast<Byte>(b >> (8 * i)));
    return static_cast<Word>(total);
}

template <typename Byte, typename Half, typename Word>
inline Word dot_halves(Word a, Word b, Word sum, int first) {
    unsigned total = static_cast<unsigned>(sum);
    for (int i = 0; i < 2; ++i) total += static_cast<unsigned>(static_cast<Half>(a >> (16 * i)) * static_cast<Byte>(b >> (8 * (first + i))));
    return static_cast<Word>(total);
}

// Applies an operation to each byte or half-word of packed operands.
template <typename Part, typename Operation>
inline unsigned int each_part(unsigned int a, unsigned int b, Operation operation) {
    constexpr unsigned bits = 8 * sizeof(Part);
    unsigned int result = 0;
    for (unsigned shift = 0; shift < 32; shift += bits) {
        const auto part = operation(static_cast<Part>(a >> shift), static_cast<Part>(b >> shift));
        result |= (static_cast<unsigned>(part) & ((1u << bits) - 1)) << shift;
    }
    return result;
}

}  // namespace cuda_cpu

inline int __dp4a(int a, int b, int sum) { return cuda_cpu::dot_bytes<signed char>(a, b, sum); }
inline unsigned int __dp4a(unsigned int a, unsigned int b, unsigned int sum) { return cuda_cpu::dot_bytes<unsigned char>(a, b, sum); }
inline int __dp2a_lo(int a, int b, int sum) { return cuda_cpu::dot_halves<signed char, short>(a, b, sum, 0); }
inline int __dp2a_hi(int a, int b, int sum) { return cuda_cpu::dot_halves<signed char, short>(a, b, sum, 2); }
inline unsigned int __dp2a_lo(unsigned int a, unsigned int b, unsigned int sum) { return cuda_cpu::dot_halves<unsigned char, unsigned short>(a, b, sum, 0); }
inline unsigned int __dp2a_hi(unsigned int a, unsigned int b, unsigned int sum) { return cuda_cpu::dot_halves<unsigned char, unsigned short>(a, b, sum, 2); }

#define CUDA_CPU_PACKED(name, Part, expression) \
    inline unsigned int name(unsigned int a, unsigned int b) { return cuda_cpu::each_part<Part>(a, b, [](int x, int y) { return expression; }); }
CUDA_CPU_PACKED(__vadd4, unsigned char, x + y)
CUDA_CPU_PACKED(__vsub4, unsigned char, x - y)
CUDA_CPU_PACKED(__vabsdiffu4, unsigned char, (x > y ? x - y : y - x))
CUDA_CPU_PACKED(__vmaxu4, unsigned char, (x > y ? x : y))
CUDA_CPU_PACKED(__vminu4, unsigned char, (x < y ? x : y))
CUDA_CPU_PACKED(__vmaxs4, signed char, (x > y ? x : y))
CUDA_CPU_PACKED(__vmins4, signed char, (x < y ? x : y))
CUDA_CPU_PACKED(__vavgu4, unsigned char, (x + y + 1) >> 1)
CUDA_CPU_PACKED(__vcmpeq4, unsigned char, (x == y ? 0xff : 0))
CUDA_CPU_PACKED(__vadd2, unsigned short, x + y)
CUDA_CPU_PACKED(__vsub2, unsigned short, x - y)
CUDA_CPU_PACKED(__vabsdiffu2, unsigned short, (x > y ? x - y : y - x))
CUDA_CPU_PACKED(__vmaxu2, unsigned short, (x > y ? x : y))
CUDA_CPU_PACKED(__vminu2, unsigned short, (x < y ? x : y))
CUDA_CPU_PACKED(__vmaxs2, short, (x > y ? x : y))
CUDA_CPU_PACKED(__vmins2, short, (x < y ? x : y))
#undef CUDA_CPU_PACKED
inline unsigned int __vsadu4(unsigned int a, unsigned int b) {
    const unsigned int differences = __vabsdiffu4(a, b);
    return __dp4a(differences, 0x01010101u, 0u);
}

inline int __float_as_int(float x) { return cuda_cpu::bits_as<int>(x); }
inline unsigned int __float_as_uint(float x) { return cuda_cpu::bits_as<unsigned int>(x); }
inline float __int_as_float(int x) { return cuda_cpu::bits_as<float>(x); }
inline float __uint_as_float(unsigned int x) { return cuda_cpu::bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return cuda_cpu::bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return cuda_cpu::bits_as<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int hi, int lo) {
    return __longlong_as_double(static_cast<long long>(static_cast<unsigned long long>(static_cast<unsigned>(hi)) << 32 | static_cast<unsigned>(lo)));
}
