// Which thread runs next: one block's threads in turn, each until it waits for others or ends.
#pragma once

#include "findings.h"
#include "observer.h"

namespace cuda_cpu {

struct Scheduler {
    Request request{};
    Entry entry{};
    StackArea stacks;
    Thread* current = nullptr;
    void* main_context = nullptr;
    uint64_t random = 1;
    bool stopped = false;
    bool progressed = false;
};

extern Scheduler scheduler;
void note_progress();

inline uint64_t next_random() {
    uint64_t& x = scheduler.random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

template <typename T>
void shuffle_order(T* items, size_t count) {
    for (size_t i = count; i > 1; --i) {
        size_t j = next_random() % i;
        T kept = items[i - 1];
        items[i - 1] = items[j];
        items[j] = kept;
    }
}

inline void make_ready(Block& block, uint32_t rank) {
    block.threads[rank].state = State::Ready;
    block.ready[(block.ready_head + block.ready_count++) & 1023] = rank;
}

inline Thread* take_next(Block& block) {
    if (block.next_new < block.order.size()) return &block.threads[block.order[block.next_new++]];
    if (!block.ready_count) return nullptr;
    Thread* thread = &block.threads[block.ready[block.ready_head++ & 1023]];
    --block.ready_count;
    return thread;
}

// Sets the built-ins to what `thread` must see.
inline void become(Thread* thread) {
    scheduler.current = thread;
    threadIdx = thread->index;
    thread->state = State::Ready;
}

void thread_body();
void watch_switch();

inline bool has_stack(Thread* thread) {
    if (thread->context) return true;
    thread->stack = scheduler.stacks.take();
    if (!thread->stack) return false;
    thread->context = fresh_context(scheduler.stacks.top(thread->stack), thread_body);
    return true;
}

// Continues `thread`, or the launch's own context when it is null or cannot be given a stack.
inline void switch_from(void** save, Thread* thread) {
    watch_switch();
    if (thread && !has_stack(thread)) {
        add_finding("too many threads", "no memory for the stack of one more waiting thread; use a smaller grid");
        scheduler.stopped = true;
        if (save == &scheduler.main_context) return;  // it is what runs
        thread = nullptr;
    }
    if (thread) become(thread);
    cuda_cpu_switch(save, thread ? thread->context : scheduler.main_context);
}

// Lets the block's waiting threads go, in the launch's thread order.
inline void release(Block& block, State waiting) {
    if (scheduler.request.order == 2) shuffle_order(block.order.data(), block.order.size());
    for (uint32_t rank : block.order)
        if (block.threads[rank].state == waiting) make_ready(block, rank);
}

inline void release_lanes(Block& block, uint32_t warp, unsigned lanes) {
    const bool backward = scheduler.request.order == 1;
    const unsigned turn = scheduler.request.order == 2 ? next_random() & 31 : 0;
    for (unsigned i = 0; i < 32; ++i) {
        unsigned lane = backward ? 31 - i : (i + turn) & 31;
        if (lanes >> lane & 1) make_ready(block, warp * 32 + lane);
    }
}

// Answers the lanes that asked which lanes are with them, once no other lane of the warp can come before it waits itself.
inline void end_meetings(Block& block, uint32_t warp) {
    std::vector<Meeting>& meetings = block.warps[warp].meetings;
    if (meetings.empty()) return;
    const size_t first = warp * 32, end = std::min(first + 32, block.threads.size());
    for (size_t rank = first; rank < end; ++rank)
        if (block.threads[rank].state == State::New || block.threads[rank].state == State::Ready) return;
    note_progress();
    for (const Meeting& meeting : meetings) {
        for (size_t rank = first; rank < end; ++rank)
            if (meeting.lanes >> (rank - first) & 1) block.threads[rank].converged = meeting.lanes;
        release_lanes(block, warp, meeting.lanes);
    }
    meetings.clear();
}

// Parks the running thread until someone makes it ready again.
inline void suspend(State state, const char* waiting_for, Site site) {
    Thread* self = scheduler.current;
    uninterruptible = 1;
    self->state = state;
    self->waiting_for = waiting_for;
    self->site = site;
    end_meetings(*self->block, self->rank / 32);
    Thread* next = take_next(*self->block);
    if (next != self) switch_from(&self->context, next);
    else become(self);
    uninterruptible = 0;
}

}  // namespace cuda_cpu
