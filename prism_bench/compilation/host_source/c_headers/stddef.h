// <stddef.h> for NVRTC, which has no C library but knows size_t, ptrdiff_t, wchar_t and NULL.
#pragma once
#if __has_include(<cuda/std/cstddef>)
#include <cuda/std/cstddef>
#endif
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
