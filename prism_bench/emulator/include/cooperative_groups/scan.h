// Prefix operations over a group of lanes.
#pragma once

#include "reduce.h"

namespace cooperative_groups {

template <typename Group, typename T, typename Operation>
inline T inclusive_scan(const Group& group, T value, Operation operation, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    for (unsigned delta = 1; delta < group.size(); delta *= 2) {
        const T before = group.shfl_up(value, delta, site);
        if (group.thread_rank() >= delta) value = operation(before, value);
    }
    return value;
}
template <typename Group, typename T>
inline T inclusive_scan(const Group& group, T value, cuda_cpu::Site site = CUDA_CPU_CALLER) { return inclusive_scan(group, value, plus<T>(), site); }

// The first rank gets T(), which is right for sums.
template <typename Group, typename T, typename Operation>
inline T exclusive_scan(const Group& group, T value, Operation operation, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    const T before = group.shfl_up(inclusive_scan(group, value, operation, site), 1, site);
    return group.thread_rank() ? before : T();
}
template <typename Group, typename T>
inline T exclusive_scan(const Group& group, T value, cuda_cpu::Site site = CUDA_CPU_CALLER) { return exclusive_scan(group, value, plus<T>(), site); }

}  // namespace cooperative_groups
