// The race mode's answers to the scheduler, and the way of one access through the checks.
#pragma once

#include "conflicts.h"
#include "traffic.h"

namespace cuda_cpu {

constexpr size_t near_bytes = 4096;

static std::vector<std::unique_ptr<WatchedBlock>> watched_blocks;

void observe_launch(const Request& request, size_t fixed_bytes) {
    order = Order{};
    order.segments.push_back({});
    told.clear();
    totals = Totals{};
    close_regions();
    open_regions(request, __start_cuda_cpu_shared, fixed_bytes, symbols, symbol_count);
}

void observe_block_start(Block& block) {
    if (!block.observer_slot) {
        watched_blocks.push_back(std::make_unique<WatchedBlock>());
        block.observer_slot = reinterpret_cast<uint64_t>(watched_blocks.back().get());
        watched(block).traffic.resize(block.warps.size());
    }
    WatchedBlock& fresh = watched(block);
    fresh.number = static_cast<uint32_t>(block.number);
    fresh.epoch = 0;
    fresh.has_knowledge = false;
    fresh.searched = nullptr;
    fresh.known_epochs.clear();
    fresh.threads.assign(block.threads.size(), Watched{});
    for (Thread& thread : block.threads) thread.observed = &fresh.threads[thread.rank];
    fresh.saved_static = fresh.saved_dynamic = SavedCells{};
    fresh.warps.clear();
    fresh.warps.resize(block.warps.size());
}

// Live blocks take turns in shared memory, and so do its cells.
void observe_shared_swap(Block* leaving, Block* entering) {
    if (leaving && leaving->observer_slot) {
        save_cells(regions.static_shared, watched(*leaving).saved_static);
        save_cells(regions.dynamic_shared, watched(*leaving).saved_dynamic);
    }
    if (!entering->observer_slot) return;
    restore_cells(regions.static_shared, watched(*entering).saved_static);
    restore_cells(regions.dynamic_shared, watched(*entering).saved_dynamic);
}

void observe_block_end(Block& block) { settle_block(watched(block).traffic); }

void observe_block_barrier(Block& block) {
    settle_block(watched(block).traffic);
    pass_block_barrier(watched(block));
}

// Who arrives makes known what came before, and who is let go learns what was made known: as at a flag of that barrier.
void observe_named_barrier(const Thread& thread, unsigned id, bool arrives) {
    const uint64_t flag = ~(thread.block->number * named_barriers + id);  // no address of memory
    if (arrives) pass_fence(thread);
    pass_flag(thread, reinterpret_cast<const volatile void*>(flag), arrives, !arrives);
}

void observe_grid_barrier() {
    ++order.grid_epoch;
    for (const auto& block : watched_blocks)
        for (Watched& thread : block->threads) thread.segment = 0;
}

void observe_warp_barrier(Block& block, unsigned warp, unsigned lanes) { pass_warp_barrier(watched(block), warp, lanes); }

void observe_warp_step(Block& block, unsigned warp) {
    for (Stream& stream : watched(block).traffic[warp].streams) settle(stream);
}

void observe_launch_end() {
    watched_blocks.clear();
}

inline uint32_t code_of(const void* code) { return static_cast<uint32_t>(static_cast<const char*>(code) - __ehdr_start); }

static void outside_shared(size_t offset, size_t bytes, const Touch& touch) {
    char text[160];
    snprintf(text, sizeof text, "%s of %zu bytes at byte %zu of dynamic shared memory, which has %zu bytes", touch.is_write ? "write" : "read",
             bytes, offset, regions.dynamic_shared.bytes);
    report_outside(text, -1, touch, 1);
    if (offset + bytes > sizeof dynamic_shared) abandon();
}

// Near a buffer the access lands in its margin; anywhere else it must not happen at all.
static void outside_global(const volatile char* at, size_t bytes, const Touch& touch) {
    const Watch* before = region_before(at);
    const Watch* after = before ? before + 1 : regions.globals.data();
    if (after == regions.globals.data() + regions.globals.size()) after = nullptr;
    const size_t past = before ? static_cast<size_t>(at - before->begin) - before->bytes : ~size_t(0);
    const size_t early = after ? static_cast<size_t>(after->begin - at) : ~size_t(0);
    const Watch* nearest = past <= early ? before : after;
    const char* verb = touch.is_write ? "write" : "read";
    char text[200];
    if (!nearest || std::min(past, early) > near_bytes) {
        snprintf(text, sizeof text, "%s of %zu bytes far from every buffer", verb, bytes);
        report_outside(text, -1, touch, 2);
        abandon();
    }
    snprintf(text, sizeof text, "%s of %zu bytes %zu byte(s) %s of %s, which has %zu bytes", verb, bytes, std::min(past, early),
             past <= early ? "past the end" : "before the beginning", name_of(*nearest).c_str(), nearest->bytes);
    report_outside(text, nearest->argument, touch, 3, at - nearest->begin);
}

static void pass(Watch& watch, const volatile char* at, size_t bytes, const Touch& touch) {
    const size_t offset = static_cast<size_t>(at - watch.begin);
    const size_t inside = std::min(bytes, watch.bytes - offset);
    check_bytes(watch, offset, inside, touch);
    if (scheduler.request.counts_traffic) {
        (touch.is_write ? watch.bytes_written : watch.bytes_read) += inside;
        if (watch.space == Space::Shared || watch.argument >= 0)
            count_request(watched(*touch.thread->block).traffic, *touch.thread, at, inside, watch.space, touch.code & ~atomic_flag);
    } else {
        recent_region(touch.code) = &watch;
    }
    if (inside == bytes) return;
    if (watch.space == Space::Global) outside_global(at + inside, bytes - inside, touch);
    else if (&watch == &regions.dynamic_shared) outside_shared(offset, bytes, touch);
}

// A thread's own locals, the runtime and constant tables are nobody's concern.
static __attribute__((noinline)) void watch_access(const volatile void* address, size_t bytes, bool is_write, uint32_t code) {
    const volatile char* at = static_cast<const volatile char*>(address);
    if (scheduler.stacks.holds(at) || !scheduler.current || !bytes) return;
    Watch* watch = nullptr;
    if (in_library(at)) {
        if (regions.static_shared.holds(at)) watch = &regions.static_shared;
        else if (regions.dynamic_shared.holds(at)) watch = &regions.dynamic_shared;
        else if (at < dynamic_shared || at >= dynamic_shared + sizeof dynamic_shared) watch = find_global(at);
        else return outside_shared(static_cast<size_t>(at - dynamic_shared), bytes, {scheduler.current, segment_of(*scheduler.current), code, is_write});
        if (!watch) return;
    } else {
        watch = find_global(at);
    }
    const Touch touch{scheduler.current, segment_of(*scheduler.current), code, is_write};
    if (watch) pass(*watch, at, bytes, touch);
    else outside_global(at, bytes, touch);
}

// Most instructions access one region again and again.
template <size_t bytes, bool is_write>
inline __attribute__((always_inline)) void observe_plain(const volatile void* address, const void* code) {
    const volatile char* at = static_cast<const volatile char*>(address);
    Thread* thread = scheduler.current;
    if (scheduler.stacks.holds(at) || !thread) return;
    Uninterruptible section;
    const uint32_t place = code_of(code);
    Watch* watch = recent_region(place);
    if (!watch || !watch->holds(at, bytes)) return watch_access(at, bytes, is_write, place);
    check_bytes(*watch, static_cast<size_t>(at - watch->begin), bytes, {thread, segment_of(*thread), place, is_write});
}

void observe_access(const volatile void* address, size_t bytes, bool is_write, const void* code) {
    Uninterruptible section;
    watch_access(address, bytes, is_write, code_of(code));
}

// A copy to shared memory that starts comes after all accesses there, and nobody may read until it has been waited for.
void observe_copy_start(char* to, size_t bytes, const void* code) {
    for (Watch* watch : {&regions.static_shared, &regions.dynamic_shared}) {
        if (!watch->holds(to, bytes)) continue;
        const size_t offset = static_cast<size_t>(to - watch->begin);
        check_bytes(*watch, offset, bytes, {scheduler.current, segment_of(*scheduler.current), code_of(code), true});
        std::fill_n(watch->cells + offset / watch->grain, bytes / watch->grain, Cell{});
    }
}

void observe_atomic(const volatile void* address, size_t bytes, const void* code) {
    Uninterruptible section;
    ++totals.atomics;
    watch_access(address, bytes, false, code_of(code) | atomic_flag);
    watch_access(address, bytes, true, code_of(code) | atomic_flag);
    pass_flag(*scheduler.current, address, true, true);
}

void fence() {
    Uninterruptible section;
    pass_fence(*scheduler.current);
}

void atomic_access(const volatile void* address, size_t bytes) { observe_atomic(address, bytes, __builtin_return_address(0)); }

}  // namespace cuda_cpu
