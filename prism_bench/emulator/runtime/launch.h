// One launch: its blocks one after another, several at a time only where they wait for each other.
#pragma once

#include "bulk_copies.h"
#include "waiting.h"

namespace cuda_cpu {

inline void poison_shared() {
    if (static_shared_bytes()) fill_shared(__start_cuda_cpu_shared, static_shared_bytes());
    if (scheduler.request.shared_bytes) fill_shared(dynamic_shared, scheduler.request.shared_bytes);
}

inline void finish(Thread& thread) {
    Block& block = *thread.block;
    if (thread.copies) end_copies(thread);
    thread.state = State::Finished;
    --block.alive;
    if (!thread.returned && !block.ran_past++) block.first_past = &thread;
    watchdog.idle_ticks = 0;
    scheduler.progressed = true;
    leave_warp(block, thread);
    open_block_barrier(block);
    end_meetings(block, thread.rank / 32);
}

// A thread that ends hands its stack to the next new thread, so that kernels without barriers never switch.
void thread_body() {
    for (;;) {
        Thread* self = scheduler.current;
        uninterruptible = 0;
        scheduler.entry.call(scheduler.entry.kernel, scheduler.request.arguments);
        uninterruptible = 1;
        self = scheduler.current;
        finish(*self);
        Thread* next = take_next(*self->block);
        char* stack = self->stack;
        self->stack = nullptr;
        self->context = nullptr;
        if (next && !next->context) {
            next->stack = stack;
            // Only its being set matters: the thread runs on, on this very stack.
            next->context = stack;
            watch_switch();
            become(next);
            continue;
        }
        scheduler.stacks.give_back(stack);
        void* unused;
        switch_from(&unused, next);
    }
}

inline void number_threads(Block& block) {
    const uint32_t* size = scheduler.request.block;
    const uint32_t count = size[0] * size[1] * size[2];
    block.threads.resize(count);
    block.order.resize(count);
    block.warps.resize((count + 31) / 32);
    for (uint32_t rank = 0; rank < count; ++rank) {
        block.threads[rank].block = &block;
        block.threads[rank].rank = rank;
        block.threads[rank].index = {rank % size[0], rank / size[0] % size[1], rank / (size[0] * size[1])};
        block.order[rank] = scheduler.request.order == 1 ? count - 1 - rank : rank;
    }
}

inline void start_block(Block& block, uint64_t number) {
    const uint32_t* grid = scheduler.request.grid;
    const size_t count = block.threads.size();
    block.index = {uint32_t(number % grid[0]), uint32_t(number / grid[0] % grid[1]), uint32_t(number / (uint64_t(grid[0]) * grid[1]))};
    block.number = number;
    block.next_new = block.ready_head = block.ready_count = block.at_barrier = block.at_grid = block.spinning = block.ran_past = 0;
    block.predicates_true = block.predicates_seen = 0;
    for (NamedBarrier& barrier : block.named) barrier.arrived = 0;
    block.loads.clear();
    block.alive = static_cast<uint32_t>(count);
    for (Thread& thread : block.threads) {
        thread.state = State::New;
        thread.returned = false;
        thread.waiting_for = "";
        thread.spun_at = 0;
    }
    for (size_t w = 0; w < block.warps.size(); ++w) {
        const size_t lanes = count - 32 * w;
        block.warps[w].present = lanes >= 32 ? ~0u : (1u << lanes) - 1;
        block.warps[w].finished = block.warps[w].ran_past = 0;
        block.warps[w].gatherings.clear();
        block.warps[w].meetings.clear();
    }
    if (scheduler.request.order == 2) shuffle_order(block.order.data(), count);
    observe_block_start(block);
}

// Runs the block until none of its threads can go on.
inline void advance(Block& block) {
    blockIdx = block.index;
    if (block.spinning) {
        block.spinning = 0;
        release(block, State::Spinning);
    }
    Thread* next = take_next(block);
    if (next) switch_from(&scheduler.main_context, next);
    scheduler.current = nullptr;
}

}  // namespace cuda_cpu
