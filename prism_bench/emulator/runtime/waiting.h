// The words for a launch that cannot go on: which threads wait, for what, and where.
#pragma once

#include "watchdog.h"

namespace cuda_cpu {

// "32 thread(s) at __syncthreads (f.cu:2), block (0,0,0) thread (0,0,0) first"
struct WaitingGroup {
    const Thread* first;
    size_t count;
};

// A thread that polls is ready again between two polls; where it waited last is what there is to say of it.
inline bool is_waiting(const Thread& thread) {
    if (thread.state == State::Ready) return thread.waiting_for[0];
    return thread.state != State::New && thread.state != State::Finished;
}

inline void count_waiting(const Block& block, std::vector<WaitingGroup>& groups) {
    for (const Thread& thread : block.threads) {
        if (!is_waiting(thread)) continue;
        WaitingGroup* found = nullptr;
        for (WaitingGroup& group : groups)
            if (same_site(group.first->site, thread.site) && !strcmp(group.first->waiting_for, thread.waiting_for)) found = &group;
        if (found) ++found->count;
        else groups.push_back({&thread, 1});
    }
}

inline std::string base_name(const char* path) {
    if (!path) return "?";
    const char* slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

inline std::string describe(const WaitingGroup& group) {
    const uint3 b = group.first->block->index, t = group.first->index;
    char text[256];
    const Site site = group.first->site;
    const std::string place = site.file ? " (" + base_name(site.file) + ":" + std::to_string(site.line) + ")" : "";
    snprintf(text, sizeof text, "%zu thread(s) at %s%s, first block (%u,%u,%u) thread (%u,%u,%u)", group.count,
             group.first->waiting_for, place.c_str(), b.x, b.y, b.z, t.x, t.y, t.z);
    return text;
}

// One finding with a sentence per group, and the first thread of two groups as its accesses.
inline void report_waiting(const char* kind, const char* opening, const std::vector<Block*>& blocks) {
    std::vector<WaitingGroup> groups;
    for (const Block* block : blocks) count_waiting(*block, groups);
    std::string message = opening;
    for (size_t i = 0; i < groups.size() && i < 6; ++i) message += (i ? "; " : ": ") + describe(groups[i]);
    Finding* finding = add_finding(kind, "%s", message.c_str());
    for (size_t i = 0; i < groups.size() && i < 2; ++i) add_access(finding, access_of(groups[i].first, groups[i].first->site));
}

}  // namespace cuda_cpu
