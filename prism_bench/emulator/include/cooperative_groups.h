// Cooperative groups: the block, the grid, tiles of a warp, and the lanes that happen to be together.
#pragma once

#include "cuda_on_cpu/group_lanes.h"
#include "cuda_pipeline.h"

namespace cooperative_groups {

inline unsigned volume(const dim3& d) { return d.x * d.y * d.z; }
inline unsigned rank_in(const uint3& at, const dim3& of) { return (at.z * of.y + at.y) * of.x + at.x; }

class thread_block {
public:
    void sync(cuda_cpu::Site site = CUDA_CPU_CALLER) const { cuda_cpu::block_barrier(site); }
    static unsigned thread_rank() { return rank_in(threadIdx, blockDim); }
    static unsigned size() { return volume(blockDim); }
    static unsigned num_threads() { return volume(blockDim); }
    static uint3 thread_index() { return threadIdx; }
    static uint3 group_index() { return blockIdx; }
    static dim3 dim_threads() { return blockDim; }
    static dim3 group_dim() { return blockDim; }
    struct arrival_token {};
    arrival_token barrier_arrive() const { return {}; }
    void barrier_wait(arrival_token&&, cuda_cpu::Site site = CUDA_CPU_CALLER) const { cuda_cpu::block_barrier(site); }
};

class grid_group {
public:
    void sync(cuda_cpu::Site site = CUDA_CPU_CALLER) const { cuda_cpu::grid_barrier(site); }
    static bool is_valid() { return true; }
    static unsigned long long block_rank() { return rank_in(blockIdx, gridDim); }
    static unsigned long long num_blocks() { return volume(gridDim); }
    static dim3 dim_blocks() { return gridDim; }
    static uint3 block_index() { return blockIdx; }
    static unsigned long long num_threads() { return num_blocks() * volume(blockDim); }
    static unsigned long long size() { return num_threads(); }
    static unsigned long long thread_rank() { return block_rank() * volume(blockDim) + rank_in(threadIdx, blockDim); }
};

// The lanes of one warp named by a mask; rank r is the r-th of them.
class coalesced_group : public cuda_cpu::LaneGroup {
public:
    explicit coalesced_group(unsigned mask) : LaneGroup(mask) {}
    unsigned meta_group_rank() const { return 0; }
    unsigned meta_group_size() const { return 1; }
};

template <unsigned Size, typename Parent = void>
class thread_block_tile : public cuda_cpu::LaneGroup {
    static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "the emulator has tiles of 1, 2, 4, 8, 16 and 32 threads");

public:
    thread_block_tile() : LaneGroup(Size == 32 ? ~0u : ((1u << Size) - 1) << (cuda_cpu::lane_index() & ~(Size - 1))) {}
    template <typename Other>
    thread_block_tile(const thread_block_tile<Size, Other>& tile) : LaneGroup(tile) {}  // `thread_block_tile<32> warp = ...`
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    static unsigned meta_group_rank() { return thread_block::thread_rank() / Size; }
    static unsigned meta_group_size() { return (thread_block::size() + Size - 1) / Size; }
};

inline thread_block this_thread_block() { return {}; }
inline grid_group this_grid() { return {}; }
inline coalesced_group coalesced_threads(cuda_cpu::Site site = CUDA_CPU_CALLER) {
    return coalesced_group(cuda_cpu::converged_lanes("coalesced_threads", site));
}

template <unsigned Size, typename Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) { return {}; }

template <typename Group>
inline coalesced_group binary_partition(const Group& group, bool predicate, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    const unsigned yes = cuda_cpu::ballot(group.lanes(), predicate, "binary_partition", site).result;
    return coalesced_group(predicate ? yes : group.lanes() & ~yes);
}
template <typename Group, typename Label>
inline coalesced_group labeled_partition(const Group& group, Label label, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    return coalesced_group(cuda_cpu::match(group.lanes(), label, "labeled_partition", site).result);
}

template <typename Group>
inline void sync(const Group& group, cuda_cpu::Site site = CUDA_CPU_CALLER) { group.sync(site); }
template <typename Group>
inline auto thread_rank(const Group& group) { return group.thread_rank(); }
template <typename Group>
inline auto group_size(const Group& group) { return group.size(); }
template <typename Group, typename Call>
inline void invoke_one(const Group& group, Call call) {
    if (group.thread_rank() == 0) call();
}

// The group's threads share the copy, each its own bytes; it happens when the group waits.
template <typename Group>
inline void memcpy_async(const Group& group, void* to, const void* from, size_t bytes) {
    for (size_t at = 4 * group.thread_rank(); at < bytes; at += 4 * size_t(group.size()))
        cuda_cpu::copy_async(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, bytes - at < 4 ? bytes - at : 4, 0);
    cuda_cpu::commit_copies();
}
template <unsigned Stages, typename Group>
inline void wait_prior(const Group& group, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    cuda_cpu::wait_for_copies(Stages);
    group.sync(site);
}
template <typename Group>
inline void wait(const Group& group, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    cuda_cpu::wait_for_copies(0);
    group.sync(site);
}

}  // namespace cooperative_groups
