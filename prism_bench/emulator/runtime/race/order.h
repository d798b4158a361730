// Which accesses happen before which: barriers of the grid and the block, __syncwarp, and atomics after a fence.
#pragma once

#include "watched.h"

namespace cuda_cpu {

// What a thread makes known by an atomic after a fence: all that came before its fence.
struct Publication {
    Segment at;
    std::unique_ptr<uint32_t[]> lanes;  // the thread's row of lane clocks, where its warp has any
    std::shared_ptr<const Knowledge> knowledge;
};

struct Flag {
    std::vector<std::shared_ptr<const Publication>> publications;
};

struct Order {
    std::vector<Segment> segments;
    std::unordered_map<uintptr_t, std::unique_ptr<Flag>> flags;
    uint32_t grid_epoch = 0;
};

static Order order;

inline uint32_t segment_of(const Thread& thread) {
    Watched& self = watched(thread);
    if (__builtin_expect(!self.segment, 0)) {
        const WatchedBlock& block = watched(*thread.block);
        self.segment = static_cast<uint32_t>(order.segments.size());
        order.segments.push_back({block.number, thread.rank, self.clock, block.epoch, order.grid_epoch});
    }
    return self.segment;
}

inline void step(Watched& thread) {
    ++thread.clock;
    thread.segment = 0;
}

inline bool comes_before(const Segment& early, const Publication& published) {
    const Segment& at = published.at;
    if (early.block != at.block) return false;
    if (early.block_epoch < at.block_epoch || (early.rank == at.rank && early.clock <= at.clock)) return true;
    return published.lanes && early.rank / 32 == at.rank / 32 && early.clock <= published.lanes[early.rank & 31];
}

// Looks through what was published, the newest first, and then through what its publishers had learnt themselves.
inline const Publication* known_by(const Segment& early, const Knowledge& knowledge, std::unordered_map<const Flag*, size_t>& seen) {
    for (const auto& [flag, count] : knowledge) {
        size_t& looked = seen[flag];
        const size_t from = looked;
        if (count <= from) continue;
        looked = count;
        for (size_t i = count; i-- > from;)
            if (comes_before(early, *flag->publications[i])) return flag->publications[i].get();
        for (size_t i = count; i-- > from;) {
            const auto& learnt = flag->publications[i]->knowledge;
            const Publication* found = learnt ? known_by(early, *learnt, seen) : nullptr;
            if (found) return found;
        }
    }
    return nullptr;
}

// What a pipeline asks for is mostly among the last that was published: looked at first, its time does not grow.
inline const Publication* recently_known(const Segment& early, const Knowledge& knowledge) {
    for (const auto& [flag, count] : knowledge)
        for (size_t i = count; i-- > (count > 8 ? count - 8 : 0);)
            if (comes_before(early, *flag->publications[i])) return flag->publications[i].get();
    return nullptr;
}

// Knowledge never changes, so what a search found in it holds for every thread that has the same.
static __attribute__((noinline)) bool known(const Segment& early, const std::shared_ptr<const Knowledge>& knowledge, WatchedBlock& block) {
    if (block.searched != knowledge) {
        block.searched = knowledge;
        block.known_epochs.clear();
    }
    uint32_t& before = block.known_epochs[early.block];
    if (early.block_epoch < before) return true;
    std::unordered_map<const Flag*, size_t> seen;
    const Publication* published = recently_known(early, *knowledge);
    if (!published) published = known_by(early, *knowledge, seen);
    if (published) before = std::max(before, published->at.block_epoch);
    return published;
}

inline __attribute__((always_inline)) bool ordered(uint32_t early_segment, const Thread& thread) {
    const Segment& early = order.segments[early_segment];
    WatchedBlock& block = watched(*thread.block);
    if (early.grid_epoch < order.grid_epoch) return true;
    if (early.block == block.number) {
        if (early.rank == thread.rank || early.block_epoch < block.epoch) return true;
        const auto& clocks = block.warps[thread.rank / 32];
        if (early.rank / 32 == thread.rank / 32 && clocks && early.clock <= clocks->clocks[thread.rank & 31][early.rank & 31]) return true;
    }
    const Watched& self = watched(thread);
    return self.knowledge && known(early, self.knowledge, block);
}

inline bool knows(const Watched& thread, const Knowledge& more) {
    if (!thread.knowledge) return false;
    for (const auto& [flag, count] : more) {
        const auto found = thread.knowledge->find(flag);
        if (found == thread.knowledge->end() || found->second < count) return false;
    }
    return true;
}

inline void learn(Watched& thread, const Knowledge& more) {
    if (knows(thread, more)) return;  // as at nearly every look at a flag that is waited for
    auto all = thread.knowledge ? std::make_shared<Knowledge>(*thread.knowledge) : std::make_shared<Knowledge>();
    for (const auto& [flag, count] : more) {
        size_t& known_count = (*all)[flag];
        if (count > known_count) known_count = count;
    }
    thread.knowledge = all;
}

// At a barrier each thread learns what any of them knew.
inline void share_knowledge(WatchedBlock& block) {
    if (!block.has_knowledge) return;
    Watched everyone;
    const Knowledge* last = nullptr;  // neighbours mostly have the same
    for (const Watched& thread : block.threads) {
        if (!thread.knowledge || thread.knowledge.get() == last) continue;
        last = thread.knowledge.get();
        if (everyone.knowledge) learn(everyone, *thread.knowledge);
        else everyone.knowledge = thread.knowledge;
    }
    for (Watched& thread : block.threads) thread.knowledge = everyone.knowledge;
}

inline void pass_block_barrier(WatchedBlock& block) {
    ++block.epoch;
    for (Watched& thread : block.threads) thread.segment = 0;
    share_knowledge(block);
}

inline void pass_warp_barrier(WatchedBlock& block, unsigned warp, unsigned lanes) {
    if (!block.warps[warp]) block.warps[warp] = std::make_unique<LaneClocks>();
    auto& clocks = block.warps[warp]->clocks;
    uint32_t joined[32] = {};
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(lanes >> lane & 1)) continue;
        for (unsigned of = 0; of < 32; ++of)
            if (clocks[lane][of] > joined[of]) joined[of] = clocks[lane][of];
        const uint32_t own = block.threads[warp * 32 + lane].clock;
        if (own > joined[lane]) joined[lane] = own;
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(lanes >> lane & 1)) continue;
        memcpy(clocks[lane], joined, sizeof joined);
        step(block.threads[warp * 32 + lane]);
    }
}

inline void pass_fence(const Thread& thread) {
    Watched& self = watched(thread);
    auto published = std::make_shared<Publication>();
    published->at = order.segments[segment_of(thread)];
    published->knowledge = self.knowledge;
    const auto& clocks = watched(*thread.block).warps[thread.rank / 32];
    if (clocks) {
        published->lanes = std::make_unique<uint32_t[]>(32);
        memcpy(published->lanes.get(), clocks->clocks[thread.rank & 31], 32 * sizeof(uint32_t));
    }
    self.fenced = published;
    self.published_to = nullptr;
    step(self);
}

// An atomic makes known what came before its thread's last fence, and learns what was made known at its address.
inline void pass_flag(const Thread& thread, const volatile void* address, bool publishes, bool learns) {
    Watched& self = watched(thread);
    auto found = order.flags.find(reinterpret_cast<uintptr_t>(address));
    if (found == order.flags.end()) {
        if (!publishes || !self.fenced) return;
        found = order.flags.emplace(reinterpret_cast<uintptr_t>(address), std::make_unique<Flag>()).first;
    }
    Flag& flag = *found->second;
    if (publishes && self.fenced && self.published_to != &flag) {
        flag.publications.push_back(self.fenced);
        self.published_to = &flag;
    }
    if (!learns) return;
    learn(self, {{&flag, flag.publications.size()}});
    watched(*thread.block).has_knowledge = true;
}

}  // namespace cuda_cpu
