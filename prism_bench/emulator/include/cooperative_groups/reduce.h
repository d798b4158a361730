// Reductions over a group of lanes.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <typename T>
struct plus { T operator()(T a, T b) const { return a + b; } };
template <typename T>
struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <typename T>
struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <typename T>
struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <typename T>
struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <typename T>
struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };

// A tree over ranks, so that any associative operation will do.
template <typename Group, typename T, typename Operation>
inline T reduce(const Group& group, T value, Operation operation, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    const unsigned rank = group.thread_rank(), size = group.size();
    for (unsigned delta = 1; delta < size; delta *= 2) {
        const T other = group.shfl_down(value, delta, site);
        if (rank % (2 * delta) == 0 && rank + delta < size) value = operation(value, other);
    }
    return group.shfl(value, 0, site);
}

}  // namespace cooperative_groups
