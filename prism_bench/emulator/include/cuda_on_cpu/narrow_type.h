// The shape of a sixteen-bit floating type and of its pair, common to half and bfloat16.
#pragma once

#include "narrow_float.h"

#define CUDA_CPU_NARROW_TYPE(T, T2, to_float, to_bits)                                                            \
    struct T##_raw {                                                                                              \
        unsigned short x;                                                                                         \
    };                                                                                                            \
    struct __attribute__((aligned(4))) T2##_raw {                                                                 \
        unsigned short x, y;                                                                                      \
    };                                                                                                            \
    struct T {                                                                                                    \
        unsigned short __x;                                                                                       \
        T() = default;                                                                                            \
        T(const T##_raw& raw) : __x(raw.x) {}                                                                     \
        operator T##_raw() const { return {__x}; }                                                                \
        T(float value) : __x(cuda_cpu::to_bits(value)) {}                                                         \
        T(double value) : __x(cuda_cpu::to_bits(cuda_cpu::to_float_odd(value))) {}                                \
        T(int value) : T(static_cast<double>(value)) {}                                                           \
        T(unsigned int value) : T(static_cast<double>(value)) {}                                                  \
        T(long long value) : T(cuda_cpu::sum_to_odd(static_cast<double>(value >> 32) * 4294967296.0, static_cast<double>(value & 0xffffffffll))) {} \
        T(unsigned long long value) : T(cuda_cpu::sum_to_odd(static_cast<double>(value >> 32) * 4294967296.0, static_cast<double>(value & 0xffffffffull))) {} \
        T(long value) : T(static_cast<long long>(value)) {}                                                       \
        T(unsigned long value) : T(static_cast<unsigned long long>(value)) {}                                     \
        T(short value) : T(static_cast<float>(value)) {}                                                          \
        T(unsigned short value) : T(static_cast<float>(value)) {}                                                 \
        operator float() const { return cuda_cpu::to_float(__x); }                                                \
    };                                                                                                            \
    struct __attribute__((aligned(4))) T2 {                                                                       \
        T x, y;                                                                                                   \
        T2() = default;                                                                                           \
        T2(const T2##_raw& raw) : x(T##_raw{raw.x}), y(T##_raw{raw.y}) {}                                         \
        T2(const T& first, const T& second) : x(first), y(second) {}                                              \
    };                                                                                                            \
    namespace cuda_cpu {                                                                                          \
    inline T make_##T(unsigned short bits) {                                                                      \
        T value;                                                                                                  \
        value.__x = bits;                                                                                         \
        return value;                                                                                             \
    }                                                                                                             \
    inline T fused(T a, T b, T c) {                                                                               \
        const double sum = sum_to_odd(static_cast<double>(float(a)) * static_cast<double>(float(b)), static_cast<double>(float(c))); \
        return T(sum);                                                                                            \
    }                                                                                                             \
    inline T add(T a, T b) { return T(sum_to_odd(static_cast<double>(float(a)), static_cast<double>(float(b)))); } \
    inline T multiply(T a, T b) { return T(static_cast<double>(float(a)) * static_cast<double>(float(b))); }      \
    inline T divide(T a, T b) { return T(static_cast<double>(float(a)) / static_cast<double>(float(b))); }        \
    inline T negate(T a) { return make_##T(static_cast<unsigned short>(a.__x ^ 0x8000)); }                        \
    }                                                                                                             \
    inline T operator+(const T& a, const T& b) { return cuda_cpu::add(a, b); }                                    \
    inline T operator-(const T& a, const T& b) { return cuda_cpu::add(a, cuda_cpu::negate(b)); }                  \
    inline T operator*(const T& a, const T& b) { return cuda_cpu::multiply(a, b); }                               \
    inline T operator/(const T& a, const T& b) { return cuda_cpu::divide(a, b); }                                 \
    inline T operator-(const T& a) { return cuda_cpu::negate(a); }                                                \
    inline T operator+(const T& a) { return a; }                                                                  \
    inline T& operator+=(T& a, const T& b) { return a = a + b; }                                                  \
    inline T& operator-=(T& a, const T& b) { return a = a - b; }                                                  \
    inline T& operator*=(T& a, const T& b) { return a = a * b; }                                                  \
    inline T& operator/=(T& a, const T& b) { return a = a / b; }                                                  \
    inline bool operator==(const T& a, const T& b) { return float(a) == float(b); }                               \
    inline bool operator!=(const T& a, const T& b) { return float(a) != float(b); }                               \
    inline bool operator<(const T& a, const T& b) { return float(a) < float(b); }                                 \
    inline bool operator<=(const T& a, const T& b) { return float(a) <= float(b); }                               \
    inline bool operator>(const T& a, const T& b) { return float(a) > float(b); }                                 \
    inline bool operator>=(const T& a, const T& b) { return float(a) >= float(b); }                               \
    inline T2 operator+(const T2& a, const T2& b) { return {a.x + b.x, a.y + b.y}; }                              \
    inline T2 operator-(const T2& a, const T2& b) { return {a.x - b.x, a.y - b.y}; }                              \
    inline T2 operator*(const T2& a, const T2& b) { return {a.x * b.x, a.y * b.y}; }                              \
    inline T2 operator/(const T2& a, const T2& b) { return {a.x / b.x, a.y / b.y}; }                              \
    inline T2 operator-(const T2& a) { return {-a.x, -a.y}; }                                                     \
    inline T2& operator+=(T2& a, const T2& b) { return a = a + b; }                                               \
    inline T2& operator-=(T2& a, const T2& b) { return a = a - b; }                                               \
    inline T2& operator*=(T2& a, const T2& b) { return a = a * b; }                                               \
    inline T2& operator/=(T2& a, const T2& b) { return a = a / b; }                                               \
    inline bool operator==(const T2& a, const T2& b) { return a.x == b.x && a.y == b.y; }                         \
    inline bool operator!=(const T2& a, const T2& b) { return a.x != b.x || a.y != b.y; }
