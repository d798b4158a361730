// Warp collectives: each lane brings a pointer to its own data, the last lane to arrive computes for all.
#pragma once

#include <unwind.h>

#include "barrier.h"

namespace cuda_cpu {

unsigned lane_index() { return scheduler.current->rank & 31; }

inline Warp& warp_of(const Thread* thread) { return thread->block->warps[thread->rank >> 5]; }

static _Unwind_Reason_Code add_call(_Unwind_Context* context, void* path) {
    uint64_t& hash = *static_cast<uint64_t*>(path);
    hash = (hash ^ _Unwind_GetIP(context)) * 0x9E3779B97F4A7C15ull;
    return _URC_NO_REASON;
}

// A function that both sides of a branch call is two places.
unsigned converged_lanes(const char* name, Site site) {
    uninterruptible = 1;
    Thread* self = scheduler.current;
    self->returned = false;
    uint64_t path = 0;
    _Unwind_Backtrace(add_call, &path);
    std::vector<Meeting>& meetings = warp_of(self).meetings;
    size_t which = 0;
    while (which < meetings.size() && meetings[which].path != path) ++which;
    if (which == meetings.size()) meetings.push_back({path, 0});
    meetings[which].lanes |= 1u << (self->rank & 31);
    suspend(State::AtWarp, name, site);
    return self->converged;
}

inline size_t join(Warp& warp, unsigned mask, const char* name, Combine combine, Site site) {
    for (size_t i = 0; i < warp.gatherings.size(); ++i)
        if (warp.gatherings[i].mask == mask && warp.gatherings[i].combine == combine && warp.gatherings[i].name == name) return i;
    warp.gatherings.push_back({mask, 0, {}, name, site, combine});
    return warp.gatherings.size() - 1;
}

// A lane that the mask names must call it too, unless it has returned.
inline void check_skipped_lanes(const Warp& warp, const Gathering& gathering) {
    const unsigned skipped = gathering.mask & warp.ran_past;
    if (!skipped || already_found("divergent barrier", gathering.site)) return;
    Finding* finding = add_finding("divergent barrier",
                                   "%s with mask 0x%08x: lane %d is in the mask and went past it to the end of the kernel; "
                                   "every lane of the mask that has not returned must call it",
                                   gathering.name, gathering.mask, __builtin_ctz(skipped));
    const Block& block = *scheduler.current->block;
    const uint32_t first = static_cast<uint32_t>(&warp - block.warps.data()) * 32 + static_cast<uint32_t>(__builtin_ctz(gathering.arrived));
    add_access(finding, access_of(&block.threads[first], gathering.site));
}

// Computes and lets the lanes go when every living lane of the mask is there.
inline bool complete(Block& block, uint32_t warp_number, size_t which) {
    Warp& warp = block.warps[warp_number];
    if (warp.gatherings[which].mask & warp.present & ~warp.finished & ~warp.gatherings[which].arrived) return false;
    Gathering gathering = warp.gatherings[which];
    warp.gatherings[which] = warp.gatherings.back();
    warp.gatherings.pop_back();
    check_skipped_lanes(warp, gathering);
    gathering.combine(gathering);
    if (!strcmp(gathering.name, "__syncwarp")) observe_warp_barrier(block, warp_number, gathering.arrived);
    observe_warp_step(block, warp_number);
    note_progress();
    release_lanes(block, warp_number, gathering.arrived);
    return true;
}

void warp_collective(unsigned mask, const char* name, void* slot, Combine combine, Site site) {
    uninterruptible = 1;
    Thread* self = scheduler.current;
    Warp& warp = warp_of(self);
    const unsigned lane = self->rank & 31;
    self->returned = false;
    if (!(mask >> lane & 1)) {
        char text[160];
        snprintf(text, sizeof text, "%s: lane %u calls it with mask 0x%08x, which does not name that lane", name, lane, mask);
        stop_launch("lane not in mask", text, site);
    }
    size_t which = join(warp, mask, name, combine, site);
    warp.gatherings[which].arrived |= 1u << lane;
    warp.gatherings[which].slots[lane] = slot;
    const bool done = complete(*self->block, self->rank >> 5, which);
    suspend(done ? State::Ready : State::AtWarp, name, site);
}

// A lane that ends may be the one that others were waiting for.
inline void leave_warp(Block& block, const Thread& thread) {
    Warp& warp = block.warps[thread.rank >> 5];
    warp.finished |= 1u << (thread.rank & 31);
    if (!thread.returned) warp.ran_past |= 1u << (thread.rank & 31);
    for (size_t i = warp.gatherings.size(); i-- > 0;)
        if (i < warp.gatherings.size()) complete(block, thread.rank >> 5, i);
}

void report_undefined_lane(const Gathering& gathering, unsigned reader, unsigned source) {
    const Thread* thread = scheduler.current;
    const Warp& warp = warp_of(thread);
    const char* why = !(warp.present >> source & 1) ? "which does not exist in this block"
                      : (warp.finished >> source & 1) ? "which has exited"
                                                      : "which is not in the mask";
    if (already_found("undefined lane", gathering.site)) return;
    Finding* finding = add_finding("undefined lane", "%s: lane %u reads lane %u, %s", gathering.name, reader, source, why);
    Access access = access_of(&thread->block->threads[(thread->rank & ~31u) + reader], gathering.site);
    add_access(finding, access);
}

}  // namespace cuda_cpu
