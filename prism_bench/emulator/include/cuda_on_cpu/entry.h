// The launch table: what each kernel takes, deduced by the compiler, so that no argument is passed unchecked.
#pragma once

#include <stddef.h>

#include <type_traits>
#include <utility>

#include "interface.h"

struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;

namespace cuda_cpu {

// One parameter: kind is f, i, u, b (bool), h (half), g (bfloat16), q (e4m3), r (e5m2), s (struct) or v (void); pointers
// describe what they point at.
struct Parameter {
    char kind;
    char is_pointer;
    char is_const;
    unsigned char alignment;
    unsigned bytes;
};

struct Entry {
    const char* name;
    const Parameter* parameters;
    unsigned count;
    void (*call)(const void* kernel, void** arguments);
    const void* kernel;
};

struct Symbol {
    const char* name;
    void* address;
    size_t bytes;
};

template <typename T>
constexpr char kind_of() {
    if constexpr (std::is_void<T>::value) return 'v';
    else if constexpr (std::is_same<T, bool>::value) return 'b';
    else if constexpr (std::is_same<T, __half>::value) return 'h';
    else if constexpr (std::is_same<T, __nv_bfloat16>::value) return 'g';
    else if constexpr (std::is_same<T, __nv_fp8_e4m3>::value) return 'q';
    else if constexpr (std::is_same<T, __nv_fp8_e5m2>::value) return 'r';
    else if constexpr (std::is_floating_point<T>::value) return 'f';
    else if constexpr (std::is_pointer<T>::value) return 'u';
    else if constexpr (std::is_integral<T>::value || std::is_enum<T>::value) return std::is_signed<T>::value ? 'i' : 'u';
    else return 's';
}

template <typename T>
constexpr unsigned size_of() {
    if constexpr (std::is_void<T>::value) return 1;
    else return sizeof(T);
}

template <typename P>
constexpr Parameter describe() {
    if constexpr (std::is_pointer<P>::value) {
        using Pointee = std::remove_pointer_t<P>;
        using Plain = std::remove_cv_t<Pointee>;
        return {kind_of<Plain>(), 1, std::is_const<Pointee>::value, 0, size_of<Plain>()};
    } else {
        return {kind_of<std::remove_cv_t<P>>(), 0, 1, alignof(P), size_of<P>()};
    }
}

template <typename... P>
struct Signature {
    // The extra element keeps the array legal for a kernel without parameters.
    static constexpr Parameter parameters[sizeof...(P) + 1] = {describe<P>()..., Parameter{}};

    template <size_t... I>
    static CUDA_CPU_UNCHECKED void unpack(void (*kernel)(P...), void** arguments, std::index_sequence<I...>) {
        kernel(*static_cast<std::remove_reference_t<P>*>(arguments[I])...);
    }
    static CUDA_CPU_UNCHECKED void call(const void* kernel, void** arguments) {
        unpack(reinterpret_cast<void (*)(P...)>(const_cast<void*>(kernel)), arguments, std::index_sequence_for<P...>{});
    }
};

template <typename... P>
Entry make_entry(const char* name, void (*kernel)(P...)) {
    using S = Signature<P...>;
    return {name, S::parameters, sizeof...(P), S::call, reinterpret_cast<const void*>(kernel)};
}

}  // namespace cuda_cpu
