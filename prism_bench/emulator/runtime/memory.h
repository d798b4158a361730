// Shared memory without a sanitizer's help.
#pragma once

#include <string.h>

#include "unwritten.h"

namespace cuda_cpu {

// What lies beyond the dynamic shared memory that was asked for is filled with this, so that a write there shows.
constexpr unsigned char beyond_shared = 0xA5;

// The first word is written by bytes, and what is written is doubled: each block of a launch has its memory filled.
inline void fill_shared(char* begin, size_t bytes) {
    for (size_t i = 0; i < bytes && i < 2; ++i) begin[i] = unwritten_byte(begin + i);
    for (size_t done = 2; done < bytes; done *= 2) memcpy(begin + done, begin, done < bytes - done ? done : bytes - done);
}
inline void copy_shared(char* to, const char* from, size_t bytes) {
    if (bytes) memcpy(to, from, bytes);
}
inline void guard_shared(size_t used) { memset(dynamic_shared + used, beyond_shared, sizeof dynamic_shared - used); }

// Offset of the first byte written beyond `used`, or -1.
inline long shared_overrun(size_t used) {
    const char guard = static_cast<char>(beyond_shared);
    // Bytes that all equal their neighbours are the guard if the first is.
    if (dynamic_shared[used] == guard && !memcmp(dynamic_shared + used, dynamic_shared + used + 1, sizeof dynamic_shared - used - 1)) return -1;
    while (dynamic_shared[used] == guard) ++used;
    return static_cast<long>(used);
}

inline void clean_stacks(char*, size_t) {}

}  // namespace cuda_cpu
