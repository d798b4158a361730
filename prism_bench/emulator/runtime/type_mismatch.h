// What -fsanitize=alignment makes the compiler call where a kernel accesses an address that is no multiple of what the
// type needs, and -fsanitize=object-size where it accesses what is outside of the array that it indexes. The address mode
// has the sanitizer's own.
#pragma once

#include "library.h"

namespace cuda_cpu {

// As the compilers lay them out (LLVM, compiler-rt/lib/ubsan/ubsan_handlers.h).
struct CheckedType {
    uint16_t kind, bits;
    char name[256];  // in quotes; as long as it takes
};

struct TypeMismatch {
    const char* file;
    uint32_t line, column;
    const CheckedType* type;
    unsigned char log_alignment;  // 0 where the address is outside of the array
    unsigned char use;  // 0 load, 1 store; above a reference, by which a struct may be copied, or the object of a member
};

// "float4" of "'const struct float4'"
inline std::string plain_name(const CheckedType& type) {
    std::string name = type.name;
    for (const char* word : {"'", "const ", "volatile ", "struct ", "{anonymous}::", "(anonymous namespace)::"})
        for (size_t at; (at = name.find(word)) != std::string::npos;) name.erase(at, strlen(word));
    return name;
}

}  // namespace cuda_cpu

// Where a device keeps a thread's own variables is its compiler's choice. Here an array of 16 bytes begins at a multiple
// of 16, so that a vector of 16 bytes in it can be judged, and would crash; smaller ones cannot be judged.
extern "C" __attribute__((visibility("hidden"), noinline)) void __ubsan_handle_type_mismatch_v1(const cuda_cpu::TypeMismatch* mismatch, const void* address) {
    using namespace cuda_cpu;
    const bool outside = !mismatch->log_alignment;
    if (!scheduler.current || (!outside && scheduler.stacks.holds(address) && mismatch->log_alignment < 4)) return;
    uninterruptible = 1;
    Access access = access_of(scheduler.current, Site{nullptr, 0, 0});
    access.code = code_offset(__builtin_return_address(0));
    access.is_write = mismatch->use == 1;
    const std::string what = "access to " + plain_name(*mismatch->type);
    if (outside) report_outside_array(what.c_str(), address, access);
    else report_misaligned(what.c_str(), address, size_t(1) << mismatch->log_alignment, access);
    abandon();
}
