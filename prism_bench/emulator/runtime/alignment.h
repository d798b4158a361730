// The words for an access whose address is not a multiple of what its type needs, or is outside of the array it indexes.
#pragma once

#include "grid.h"

namespace cuda_cpu {

// " at byte 4 of argument 0", " at byte 8 of dynamic shared memory"; notes argument and byte in the finding, too.
inline std::string name_place(const char* at, Finding& finding) {
    const Request& request = scheduler.request;
    for (int i = 0; i < request.buffer_count; ++i) {
        const Buffer& buffer = request.buffers[i];
        if (static_cast<uint64_t>(at - buffer.begin) >= buffer.bytes) continue;
        finding.argument = buffer.argument;
        finding.offset = at - buffer.begin;
        return " at byte " + std::to_string(finding.offset) + " of argument " + std::to_string(buffer.argument);
    }
    const char* const begins[] = {__start_cuda_cpu_shared, dynamic_shared};
    const size_t sizes[] = {static_shared_bytes(), sizeof dynamic_shared};
    for (int i = 0; i < 2; ++i)
        if (static_cast<size_t>(at - begins[i]) < sizes[i])
            return " at byte " + std::to_string(at - begins[i]) + (i ? " of dynamic shared memory" : " of static shared memory");
    return "";
}

inline void report_misaligned(const char* what, const volatile void* address, size_t alignment, const Access& access) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(address);
    Finding* finding = add_finding("misaligned", "");
    if (!finding) return;
    const std::string place = name_place(reinterpret_cast<const char*>(at), *finding);
    snprintf(finding->message, sizeof finding->message, "%s%s; its address is a multiple of %zu and has to be one of %zu", what, place.c_str(),
             size_t(at & -at), alignment);
    add_access(finding, access);
}

inline void report_outside_array(const char* what, const volatile void* address, const Access& access) {
    Finding* finding = add_finding("out of bounds", "");
    if (!finding) return;
    const std::string place = name_place(static_cast<const char*>(const_cast<const void*>(address)), *finding);
    snprintf(finding->message, sizeof finding->message, "%s%s, outside of the array that is indexed", what, place.c_str());
    add_access(finding, access);
}

}  // namespace cuda_cpu
