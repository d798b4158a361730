// The checks on one access: inside its region, not before shared memory was written, ordered against the others.
#pragma once

#include <set>

#include "regions.h"

namespace cuda_cpu {

static std::set<std::pair<uint64_t, uint64_t>> told;

inline bool first_time(uint64_t one, uint64_t other) { return told.insert(std::minmax(one, other)).second; }

inline Access access_by(const Segment& segment, uint32_t code, bool is_write) {
    Access access{};
    const uint32_t* grid = scheduler.request.grid;
    const uint32_t* size = scheduler.request.block;
    const uint32_t block[3] = {segment.block % grid[0], segment.block / grid[0] % grid[1], segment.block / (grid[0] * grid[1])};
    const uint32_t thread[3] = {segment.rank % size[0], segment.rank / size[0] % size[1], segment.rank / (size[0] * size[1])};
    memcpy(access.block, block, sizeof block);
    memcpy(access.thread, thread, sizeof thread);
    access.code = code & ~atomic_flag;
    access.is_write = is_write;
    return access;
}

inline std::string name_of(const Watch& watch) {
    return watch.argument >= 0 ? "argument " + std::to_string(watch.argument) : std::string(watch.name);
}

struct Touch {
    Thread* thread;
    uint32_t segment;
    uint32_t code;
    bool is_write;
};

static __attribute__((noinline, cold)) void report_race(const Watch& watch, size_t offset, uint32_t segment, uint32_t code, bool was_write, const Touch& touch) {
    if (!first_time(code, touch.code)) return;
    Finding* finding = add_finding("race", "%s and %s of byte %zu of %s, with no barrier between them", was_write ? "write" : "read",
                                   touch.is_write ? "write" : "read", offset, name_of(watch).c_str());
    if (!finding) return;
    finding->argument = watch.argument;
    finding->offset = static_cast<int64_t>(offset);
    add_access(finding, access_by(order.segments[segment], code, was_write));
    add_access(finding, access_by(order.segments[touch.segment], touch.code, touch.is_write));
}

// Shared memory is a new one in each block: what another block left in a cell does not count.
inline __attribute__((always_inline)) bool counts(const Watch& watch, uint32_t segment, const Touch& touch) {
    if (!segment) return false;
    return watch.space == Space::Global || order.segments[segment].block == order.segments[touch.segment].block;
}

inline __attribute__((always_inline)) bool races(const Watch& watch, uint32_t segment, uint32_t code, const Touch& touch) {
    if (segment == touch.segment || !counts(watch, segment, touch) || code & touch.code & atomic_flag) return false;
    return !ordered(segment, *touch.thread);
}

static __attribute__((noinline, cold)) void report_unwritten(const Watch& watch, size_t offset, const Touch& touch) {
    if (!first_time(touch.code, ~0ull)) return;
    Finding* finding = add_finding("unwritten shared read", "read of byte %zu of %s, which this block has not written", offset, watch.name);
    add_access(finding, access_by(order.segments[touch.segment], touch.code, false));
}

inline __attribute__((always_inline)) void check_cell(const Watch& watch, const Cell& cell, size_t offset, const Touch& touch) {
    if (watch.space == Space::Shared && !touch.is_write && !counts(watch, cell.write_segment, touch)) report_unwritten(watch, offset, touch);
    if (races(watch, cell.write_segment, cell.write_code, touch))
        report_race(watch, offset, cell.write_segment, cell.write_code, true, touch);
    if (!touch.is_write) return;
    for (int i = 0; i < 2; ++i)
        if (races(watch, cell.read_segment[i], cell.read_code[i], touch))
            report_race(watch, offset, cell.read_segment[i], cell.read_code[i], false, touch);
}

inline bool same_thread(uint32_t one, uint32_t other) {
    const Segment &a = order.segments[one], &b = order.segments[other];
    return a.block == b.block && a.rank == b.rank;
}

// Of the readers the oldest that is not of this thread makes room: two of different threads tell most.
inline __attribute__((always_inline)) void note_read(Cell& cell, const Touch& touch) {
    const uint32_t first = cell.read_segment[0];
    const int slot = first == 0 || first == touch.segment || same_thread(first, touch.segment) ? 0 : 1;
    cell.read_segment[slot] = touch.segment;
    cell.read_code[slot] = touch.code;
}

inline __attribute__((always_inline)) void note(Cell& cell, const Touch& touch) {
    if (!touch.is_write) return note_read(cell, touch);
    cell.write_segment = touch.segment;
    cell.write_code = touch.code;
}

// Inline where the compiler knows the access's size and kind.
inline __attribute__((always_inline)) void check_bytes(Watch& watch, size_t offset, size_t bytes, const Touch& touch) {
    if (watch.grain == 4 && (offset | bytes) % 4) watch_bytes(watch);
    const size_t grain = watch.grain;
    Cell* cell = watch.cells + (grain == 4 ? offset / 4 : offset);
    for (size_t at = offset; at < offset + bytes; at += grain, ++cell) {
        check_cell(watch, *cell, at, touch);
        note(*cell, touch);
    }
}

inline void report_outside(const char* message, int argument, const Touch& touch, uint64_t what, int64_t offset = no_offset) {
    if (!first_time(touch.code, what)) return;
    Finding* finding = add_finding("out of bounds", "%s", message);
    if (!finding) return;
    finding->argument = argument;
    finding->offset = offset;
    add_access(finding, access_by(order.segments[touch.segment], touch.code, touch.is_write));
}

}  // namespace cuda_cpu
