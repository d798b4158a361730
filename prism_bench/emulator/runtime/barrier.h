// Barriers of a block and of the grid.
#pragma once

#include "scheduler.h"

namespace cuda_cpu {

inline bool same_site(Site a, Site b) {
    return a.line == b.line && a.counter == b.counter && (a.file == b.file || !strcmp(a.file, b.file));
}

inline void check_divergence(Block& block, Site site) {
    if (same_site(block.barrier_site, site) || already_found("divergent barrier", block.barrier_site)) return;
    const Thread* first = nullptr;
    for (const Thread& thread : block.threads)
        if (thread.state == State::AtBlockBarrier) first = &thread;
    Finding* finding = add_finding("divergent barrier", "threads of one block wait at different __syncthreads: line %d and line %d",
                                   block.barrier_site.line, site.line);
    add_access(finding, access_of(first, block.barrier_site));
    add_access(finding, access_of(scheduler.current, site));
}

// A thread that returned has exited, and a barrier does without it. One that went around a barrier to the kernel's end has
// not: the barrier is in a branch that this thread did not take, which CUDA leaves undefined.
inline void check_skipped(const Block& block) {
    if (!block.ran_past || already_found("divergent barrier", block.barrier_site)) return;
    const Thread* waiting = nullptr;
    for (const Thread& thread : block.threads)
        if (thread.state == State::AtBlockBarrier && !waiting) waiting = &thread;
    const uint3 t = block.first_past->index;
    const bool several = block.at_barrier != 1;
    Finding* finding = add_finding("divergent barrier",
                                   "%u thread%s of the block wait%s at __syncthreads, and %u went past it to the end of the kernel, "
                                   "first thread (%u, %u, %u); every thread that has not returned must reach it",
                                   block.at_barrier, several ? "s" : "", several ? "" : "s", block.ran_past, t.x, t.y, t.z);
    add_access(finding, access_of(waiting, block.barrier_site));
}

// Called whenever a thread has arrived or ended: threads that ended are not waited for.
inline void open_block_barrier(Block& block) {
    if (!block.at_barrier || block.at_barrier != block.alive) return;
    check_skipped(block);
    block.at_barrier = 0;
    block.barrier_true = block.predicates_true;
    block.barrier_seen = block.predicates_seen;
    block.predicates_true = block.predicates_seen = 0;
    observe_block_barrier(block);
    note_progress();
    release(block, State::AtBlockBarrier);
}

static void arrive_at_block_barrier(Site site, const char* name) {
    Block& block = *scheduler.current->block;
    if (block.at_barrier++) check_divergence(block, site);
    else block.barrier_site = site;
    Thread* self = scheduler.current;
    self->returned = false;
    self->state = State::AtBlockBarrier;
    open_block_barrier(block);
    if (self->state == State::Ready) suspend(State::Ready, name, site);
    else suspend(State::AtBlockBarrier, name, site);
}

void block_barrier(Site site) {
    uninterruptible = 1;
    arrive_at_block_barrier(site, "__syncthreads");
}

int block_barrier_reduce(int kind, int predicate, Site site) {
    uninterruptible = 1;
    Block& block = *scheduler.current->block;
    block.predicates_seen += 1;
    block.predicates_true += predicate;
    arrive_at_block_barrier(site, "__syncthreads");
    if (kind == 0) return block.barrier_true;
    return kind == 1 ? block.barrier_true == block.barrier_seen : block.barrier_true > 0;
}

// A barrier for as many threads as its count says. A warp that is not full counts as 32 threads.
void named_barrier(unsigned id, unsigned threads, bool waits, Site site) {
    uninterruptible = 1;
    Thread* self = scheduler.current;
    Block& block = *self->block;
    const unsigned most = 32 * static_cast<unsigned>(block.warps.size());
    const char* name = waits ? "bar.sync" : "bar.arrive";
    char text[200] = "";
    if (id >= named_barriers) snprintf(text, sizeof text, "%s of barrier %u; a block has the barriers 0 to %u", name, id, named_barriers - 1);
    else if (!threads || threads % 32 || threads > most)
        snprintf(text, sizeof text, "%s of barrier %u for %u threads; it takes a multiple of 32, at most the block's %u", name, id, threads, most);
    else if (block.named[id].arrived && block.named[id].threads != threads)
        snprintf(text, sizeof text, "%s of barrier %u for %u threads; threads wait there for %u (line %d)", name, id, threads,
                 block.named[id].threads, block.named[id].line);
    if (*text) stop_launch("named barrier", text, site);
    NamedBarrier& barrier = block.named[id];
    barrier.threads = threads;
    barrier.line = site.line;
    const auto present = static_cast<uint32_t>(__builtin_popcount(block.warps[self->rank / 32].present));
    barrier.arrived += self->rank % 32 ? 1 : 33 - present;
    self->returned = false;
    self->named = static_cast<uint8_t>(id);
    if (waits) self->state = State::AtNamedBarrier;
    observe_named_barrier(*self, id, true);
    if (barrier.arrived >= threads) {
        barrier.arrived = 0;
        note_progress();
        for (uint32_t rank : block.order) {
            const Thread& thread = block.threads[rank];
            if (thread.state != State::AtNamedBarrier || thread.named != id) continue;
            observe_named_barrier(thread, id, false);
            make_ready(block, rank);
        }
    }
    if (waits) suspend(self->state, name, site);
    else uninterruptible = 0;
}

void grid_barrier(Site site) {
    uninterruptible = 1;
    if (!scheduler.request.cooperative)
        stop_launch("grid sync", "grid.sync() needs a cooperative launch, and this launch is not one", site);
    ++scheduler.current->block->at_grid;
    suspend(State::AtGridBarrier, "grid.sync", site);
}

}  // namespace cuda_cpu
