// What shared memory holds before a kernel writes to it.
#pragma once

#include <stdint.h>

#include "../include/cuda_on_cpu/interface.h"

namespace cuda_cpu {

// The 16-bit word 0x7FFF, again and again: a NaN in each floating type from FP8 to FP64, so that a read of unwritten
// shared memory shows. It is not the NaN that an output holds before a launch, whose every byte is 0xFF: an element that
// the kernel computed from unwritten shared memory is wrong, not "never written".
inline char unwritten_byte(const char* place) {
    return static_cast<char>(reinterpret_cast<uintptr_t>(place) & 1 ? 0x7F : 0xFF);
}

}  // namespace cuda_cpu
