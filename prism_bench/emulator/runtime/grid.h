// The blocks of a launch: which are live, whose shared memory is in place, when all have reached the grid barrier.
#pragma once

#include <memory>

#include "launch.h"

namespace cuda_cpu {

struct Grid {
    std::vector<std::unique_ptr<Block>> spare;
    std::vector<Block*> live;
    std::vector<uint64_t> numbers;  // only where blocks do not run forward
    uint64_t started = 0, count = 0;
    Block* in_place = nullptr;
};

static Grid grid;

inline uint64_t block_number(uint64_t turn) {
    if (scheduler.request.order == 1) return grid.count - 1 - turn;
    return scheduler.request.order == 2 ? grid.numbers[turn] : turn;
}

// Shared memory lies at fixed addresses, so live blocks take turns in it.
inline void save_shared(Block& block) {
    const size_t fixed = static_shared_bytes(), dynamic = scheduler.request.shared_bytes;
    block.saved_shared.resize(fixed + dynamic);
    copy_shared(block.saved_shared.data(), __start_cuda_cpu_shared, fixed);
    copy_shared(block.saved_shared.data() + fixed, dynamic_shared, dynamic);
}

inline void restore_shared(Block& block) {
    const size_t fixed = static_shared_bytes(), dynamic = scheduler.request.shared_bytes;
    copy_shared(__start_cuda_cpu_shared, block.saved_shared.data(), fixed);
    copy_shared(dynamic_shared, block.saved_shared.data() + fixed, dynamic);
}

inline void put_in_place(Block* block, bool fresh) {
    if (grid.in_place == block && !fresh) return;
    if (grid.in_place && grid.in_place != block) save_shared(*grid.in_place);
    observe_shared_swap(grid.in_place, block);
    if (fresh) poison_shared();
    else restore_shared(*block);
    grid.in_place = block;
}

inline Block& add_block() {
    if (grid.spare.empty()) {
        grid.spare.push_back(std::make_unique<Block>());
        number_threads(*grid.spare.back());
    }
    Block* block = grid.spare.back().release();
    grid.spare.pop_back();
    grid.live.push_back(block);
    put_in_place(block, true);
    start_block(*block, block_number(grid.started++));
    return *block;
}

inline void retire(size_t which) {
    Block* block = grid.live[which];
    observe_block_end(*block);
    if (grid.in_place == block) grid.in_place = nullptr;
    grid.spare.emplace_back(block);
    grid.live.erase(grid.live.begin() + static_cast<long>(which));
}

inline bool open_grid_barrier() {
    if (!scheduler.request.cooperative || grid.live.empty()) return false;
    for (const Block* block : grid.live)
        if (block->at_grid != block->alive) return false;
    observe_grid_barrier();
    note_progress();
    for (Block* block : grid.live) {
        block->at_grid = 0;
        release(*block, State::AtGridBarrier);
    }
    return true;
}

inline void advance_all() {
    for (size_t i = 0; i < grid.live.size() && !scheduler.stopped;) {
        Block* block = grid.live[i];
        put_in_place(block, false);
        advance(*block);
        if (block->alive) ++i;
        else retire(i);
    }
}

inline bool any_spinning() {
    for (const Block* block : grid.live)
        if (block->spinning) return true;
    return false;
}

// Another block starts when all before it have ended, or when those that are live wait for something.
inline bool start_more() {
    if (grid.started == grid.count) return false;
    if (!grid.live.empty() && scheduler.progressed && !scheduler.request.cooperative) return false;
    if (!grid.live.empty() && !any_spinning() && !scheduler.request.cooperative) return false;
    do add_block();
    while (scheduler.request.cooperative && grid.started < grid.count);
    return true;
}

inline void run_grid() {
    while (!scheduler.stopped) {
        const bool grew = start_more();
        if (grid.live.empty()) return;
        scheduler.progressed = false;
        advance_all();
        if (scheduler.stopped || scheduler.progressed || grew || open_grid_barrier() || any_spinning()) continue;
        report_waiting("deadlock", "deadlock, no thread can go on", grid.live);
        scheduler.stopped = true;
    }
}

// Threads that never ended leave their stacks behind; those are clean again once nobody runs on them.
inline void drop_live_blocks() {
    for (Block* block : grid.live) {
        for (Thread& thread : block->threads) {
            if (thread.stack) scheduler.stacks.give_back(thread.stack);
            drop_copies(thread);
        }
        delete block;
    }
    if (!grid.live.empty()) clean_stacks(scheduler.stacks.begin, scheduler.stacks.made * stack_bytes);
    grid.live.clear();
    grid.spare.clear();
    grid.in_place = nullptr;
    scheduler.stacks.trim();
}

}  // namespace cuda_cpu
