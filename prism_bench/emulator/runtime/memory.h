// Device buffers with margins around them, and shared memory, without a sanitizer's help.
#pragma once

#include <stdlib.h>
#include <string.h>

namespace cuda_cpu {

// An overrun by less than this lands in the margin: found afterwards, and harmless to others.
constexpr size_t margin_bytes = 4096;
constexpr unsigned char margin_fill = 0xA5;

inline void fill_shared(char* begin, size_t bytes) { memset(begin, 0xFF, bytes); }
inline void copy_shared(char* to, const char* from, size_t bytes) {
    if (bytes) memcpy(to, from, bytes);
}
inline void guard_shared(size_t used) { memset(dynamic_shared + used, margin_fill, sizeof dynamic_shared - used); }

}  // namespace cuda_cpu

extern "C" __attribute__((visibility("default"))) char* cuda_cpu_allocate(size_t bytes) {
    using namespace cuda_cpu;
    const size_t all = (2 * margin_bytes + bytes + 255) / 256 * 256;
    char* block = static_cast<char*>(aligned_alloc(4096, (all + 4095) / 4096 * 4096));
    if (!block) return nullptr;
    memset(block, margin_fill, margin_bytes);
    memset(block + margin_bytes + bytes, margin_fill, margin_bytes);
    return block + margin_bytes;
}

extern "C" __attribute__((visibility("default"))) void cuda_cpu_free(char* buffer) {
    if (buffer) free(buffer - cuda_cpu::margin_bytes);
}

// How far outside its buffer something was written: -n before it, n past it, 0 not at all.
extern "C" __attribute__((visibility("default"))) long cuda_cpu_overrun(const char* buffer, size_t bytes) {
    using namespace cuda_cpu;
    for (size_t i = 0; i < margin_bytes; ++i)
        if (static_cast<unsigned char>(buffer[bytes + i]) != margin_fill) return static_cast<long>(i + 1);
    for (size_t i = 1; i <= margin_bytes; ++i)
        if (static_cast<unsigned char>(buffer[-static_cast<long>(i)]) != margin_fill) return -static_cast<long>(i);
    return 0;
}
