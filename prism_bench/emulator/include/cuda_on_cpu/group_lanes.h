// What every group of lanes of one warp can do.
#pragma once

#include "warp_functions.h"

namespace cuda_cpu {

class LaneGroup {
public:
    explicit LaneGroup(unsigned mask) : mask_(mask) {}

    unsigned lanes() const { return mask_; }
    unsigned size() const { return static_cast<unsigned>(__popc(mask_)); }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const { return static_cast<unsigned>(__popc(mask_ & ((1u << lane_index()) - 1))); }
    void sync(Site site = CUDA_CPU_CALLER) const { __syncwarp(mask_, site); }

    template <typename T>
    T shfl(T value, unsigned rank, Site site = CUDA_CPU_CALLER) const {
        return shuffle(mask_, value, lane_of(rank % size()), "shfl", site);
    }
    template <typename T>
    T shfl_up(T value, unsigned delta, Site site = CUDA_CPU_CALLER) const {
        const unsigned rank = thread_rank();
        return shuffle(mask_, value, lane_of(rank >= delta ? rank - delta : rank), "shfl_up", site);
    }
    template <typename T>
    T shfl_down(T value, unsigned delta, Site site = CUDA_CPU_CALLER) const {
        const unsigned rank = thread_rank();
        return shuffle(mask_, value, lane_of(rank + delta < size() ? rank + delta : rank), "shfl_down", site);
    }
    template <typename T>
    T shfl_xor(T value, unsigned flipped, Site site = CUDA_CPU_CALLER) const {
        const unsigned rank = thread_rank() ^ flipped;
        return shuffle(mask_, value, lane_of(rank < size() ? rank : thread_rank()), "shfl_xor", site);
    }

    int any(int predicate, Site site = CUDA_CPU_CALLER) const { return cuda_cpu::ballot(mask_, predicate, "any", site).result != 0; }
    int all(int predicate, Site site = CUDA_CPU_CALLER) const { return cuda_cpu::ballot(mask_, predicate, "all", site).all; }
    unsigned ballot(int predicate, Site site = CUDA_CPU_CALLER) const { return by_rank(cuda_cpu::ballot(mask_, predicate, "ballot", site).result); }
    template <typename T>
    unsigned match_any(T value, Site site = CUDA_CPU_CALLER) const { return by_rank(match(mask_, value, "match_any", site).result); }
    template <typename T>
    unsigned match_all(T value, int& all_equal, Site site = CUDA_CPU_CALLER) const {
        const Ballot found = match(mask_, value, "match_all", site);
        all_equal = found.all;
        return found.all ? by_rank(found.result) : 0;
    }

    // The warp's lane of the given rank.
    unsigned lane_of(unsigned rank) const {
        unsigned left = mask_;
        while (rank--) left &= left - 1;
        return left ? static_cast<unsigned>(__builtin_ctz(left)) : 31;
    }

private:
    unsigned by_rank(unsigned found) const {
        unsigned result = 0;
        for (unsigned rank = 0; rank < size(); ++rank) result |= (found >> lane_of(rank) & 1) << rank;
        return result;
    }

    unsigned mask_;
};

}  // namespace cuda_cpu
