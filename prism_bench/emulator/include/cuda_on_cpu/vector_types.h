// The built-in vector types, with CUDA's alignment, and their make_ functions.
#pragma once

#define CUDA_CPU_VECTOR(T, name, align2, align4)                                                                      \
    struct name##1 { T x; };                                                                                          \
    struct __attribute__((aligned(align2))) name##2 { T x, y; };                                                      \
    struct name##3 { T x, y, z; };                                                                                    \
    struct __attribute__((aligned(align4))) name##4 { T x, y, z, w; };                                                \
    constexpr name##1 make_##name##1(T x) { return {x}; }                                                             \
    constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                                                     \
    constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                                             \
    constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

CUDA_CPU_VECTOR(signed char, char, 2, 4)
CUDA_CPU_VECTOR(unsigned char, uchar, 2, 4)
CUDA_CPU_VECTOR(short, short, 4, 8)
CUDA_CPU_VECTOR(unsigned short, ushort, 4, 8)
CUDA_CPU_VECTOR(int, int, 8, 16)
CUDA_CPU_VECTOR(unsigned int, uint, 8, 16)
CUDA_CPU_VECTOR(long, long, 16, 16)
CUDA_CPU_VECTOR(unsigned long, ulong, 16, 16)
CUDA_CPU_VECTOR(long long, longlong, 16, 16)
CUDA_CPU_VECTOR(unsigned long long, ulonglong, 16, 16)
CUDA_CPU_VECTOR(float, float, 8, 16)
CUDA_CPU_VECTOR(double, double, 16, 16)

#undef CUDA_CPU_VECTOR

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
