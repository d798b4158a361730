// Shuffles, votes, matches and reductions of a warp.
#pragma once

#include "builtins.h"
#include "integer.h"

namespace cuda_cpu {

template <typename T>
struct Exchange {
    T value;
    unsigned source;
    T result;
};

// A lane that is not there has no value; all bits set is a NaN in every floating type.
template <typename T>
inline T undefined_value() {
    T value;
    __builtin_memset(static_cast<void*>(&value), 0xff, sizeof value);
    return value;
}

template <typename T>
void combine_shuffle(Gathering& g) {
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(g.arrived >> lane & 1)) continue;
        Exchange<T>& mine = *static_cast<Exchange<T>*>(g.slots[lane]);
        const unsigned source = mine.source;
        if (g.arrived >> source & 1) {
            mine.result = static_cast<Exchange<T>*>(g.slots[source])->value;
        } else {
            report_undefined_lane(g, lane, source);
            mine.result = undefined_value<T>();
        }
    }
}

template <typename T>
inline T shuffle(unsigned mask, T value, unsigned source, const char* name, Site site) {
    Exchange<T> exchange{value, source, value};
    warp_collective(mask, name, &exchange, combine_shuffle<T>, site);
    return exchange.result;
}

// The lanes of one segment of `width` lanes, and where in it the caller stands.
struct Segment {
    unsigned first, last;
    explicit Segment(int width) : first(lane_index() & ~(static_cast<unsigned>(width) - 1)), last(first + static_cast<unsigned>(width) - 1) {}
};

struct Ballot {
    unsigned long long key;
    unsigned vote, result;
    int all;
};

inline void combine_ballot(Gathering& g) {
    unsigned votes = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
        if (g.arrived >> lane & 1 && static_cast<Ballot*>(g.slots[lane])->vote) votes |= 1u << lane;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(g.arrived >> lane & 1)) continue;
        static_cast<Ballot*>(g.slots[lane])->result = votes;
        static_cast<Ballot*>(g.slots[lane])->all = votes == g.arrived;
    }
}

inline Ballot ballot(unsigned mask, int predicate, const char* name, Site site) {
    Ballot mine{0, predicate != 0, 0, 0};
    warp_collective(mask, name, &mine, combine_ballot, site);
    return mine;
}

inline void combine_match(Gathering& g) {
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(g.arrived >> lane & 1)) continue;
        Ballot& mine = *static_cast<Ballot*>(g.slots[lane]);
        mine.result = 0;
        for (unsigned other = 0; other < 32; ++other)
            if (g.arrived >> other & 1 && static_cast<Ballot*>(g.slots[other])->key == mine.key) mine.result |= 1u << other;
        mine.all = mine.result == g.arrived;
    }
}

template <typename T>
inline Ballot match(unsigned mask, T value, const char* name, Site site) {
    Ballot mine{0, 0, 0, 0};
    __builtin_memcpy(&mine.key, &value, sizeof value);
    warp_collective(mask, name, &mine, combine_match, site);
    return mine;
}

template <typename T, typename Fold>
void combine_fold(Gathering& g) {
    bool first = true;
    T total{};
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(g.arrived >> lane & 1)) continue;
        const T value = *static_cast<T*>(g.slots[lane]);
        total = first ? value : Fold()(total, value);
        first = false;
    }
    for (unsigned lane = 0; lane < 32; ++lane)
        if (g.arrived >> lane & 1) *static_cast<T*>(g.slots[lane]) = total;
}

template <typename Fold, typename T>
inline T fold(unsigned mask, T value, const char* name, Site site) {
    warp_collective(mask, name, &value, combine_fold<T, Fold>, site);
    return value;
}

struct Add { template <typename T> T operator()(T a, T b) const { return a + b; } };
struct Least { template <typename T> T operator()(T a, T b) const { return b < a ? b : a; } };
struct Most { template <typename T> T operator()(T a, T b) const { return a < b ? b : a; } };
struct And { template <typename T> T operator()(T a, T b) const { return a & b; } };
struct Or { template <typename T> T operator()(T a, T b) const { return a | b; } };
struct Xor { template <typename T> T operator()(T a, T b) const { return a ^ b; } };

inline void combine_nothing(Gathering&) {}

}  // namespace cuda_cpu

inline void __syncwarp(unsigned mask = 0xffffffffu, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    int nothing = 0;
    cuda_cpu::warp_collective(mask, "__syncwarp", &nothing, cuda_cpu::combine_nothing, site);
}

inline unsigned __activemask(cuda_cpu::Site site = CUDA_CPU_CALLER) { return cuda_cpu::converged_lanes("__activemask", site); }

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    const cuda_cpu::Segment segment(width);
    return cuda_cpu::shuffle(mask, value, segment.first + (static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1)), "__shfl_sync", site);
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    const unsigned lane = cuda_cpu::lane_index();
    const bool inside = lane >= cuda_cpu::Segment(width).first + delta;
    return cuda_cpu::shuffle(mask, value, inside ? lane - delta : lane, "__shfl_up_sync", site);
}
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    const unsigned lane = cuda_cpu::lane_index();
    const bool inside = lane + delta <= cuda_cpu::Segment(width).last;
    return cuda_cpu::shuffle(mask, value, inside ? lane + delta : lane, "__shfl_down_sync", site);
}
// Reaching into an earlier segment is allowed; into a later one gives back one's own value.
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int flipped, int width = 32, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    const unsigned lane = cuda_cpu::lane_index(), source = lane ^ (static_cast<unsigned>(flipped) & 31);
    const bool inside = source <= cuda_cpu::Segment(width).last;
    return cuda_cpu::shuffle(mask, value, inside ? source : lane, "__shfl_xor_sync", site);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    return cuda_cpu::ballot(mask, predicate, "__ballot_sync", site).result;
}
inline int __all_sync(unsigned mask, int predicate, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    return cuda_cpu::ballot(mask, predicate, "__all_sync", site).all;
}
inline int __any_sync(unsigned mask, int predicate, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    return cuda_cpu::ballot(mask, predicate, "__any_sync", site).result != 0;
}
inline int __uni_sync(unsigned mask, int predicate, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    const cuda_cpu::Ballot votes = cuda_cpu::ballot(mask, predicate, "__uni_sync", site);
    return votes.all || votes.result == 0;
}
template <typename T>
inline unsigned __match_any_sync(unsigned mask, T value, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    return cuda_cpu::match(mask, value, "__match_any_sync", site).result;
}
template <typename T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all_equal, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    const cuda_cpu::Ballot found = cuda_cpu::match(mask, value, "__match_all_sync", site);
    *all_equal = found.all;
    return found.all ? found.result : 0;
}

#define CUDA_CPU_REDUCE(name, Fold, T) \
    inline T name(unsigned mask, T value, cuda_cpu::Site site = CUDA_CPU_CALLER) { return cuda_cpu::fold<cuda_cpu::Fold>(mask, value, #name, site); }
CUDA_CPU_REDUCE(__reduce_add_sync, Add, unsigned)
CUDA_CPU_REDUCE(__reduce_add_sync, Add, int)
CUDA_CPU_REDUCE(__reduce_min_sync, Least, unsigned)
CUDA_CPU_REDUCE(__reduce_min_sync, Least, int)
CUDA_CPU_REDUCE(__reduce_max_sync, Most, unsigned)
CUDA_CPU_REDUCE(__reduce_max_sync, Most, int)
CUDA_CPU_REDUCE(__reduce_and_sync, And, unsigned)
CUDA_CPU_REDUCE(__reduce_or_sync, Or, unsigned)
CUDA_CPU_REDUCE(__reduce_xor_sync, Xor, unsigned)
#undef CUDA_CPU_REDUCE
