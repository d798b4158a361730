// What lies where: device buffers, shared memory of the running block, global variables; and each byte's last accesses.
#pragma once

#include <algorithm>

#include "order.h"

namespace cuda_cpu {

constexpr uint32_t atomic_flag = 0x80000000u;

struct Watch {
    char* begin = nullptr;
    size_t bytes = 0;
    int argument = -1;
    Space space = Space::Global;
    const char* name = "";
    Cell* cells = nullptr;
    size_t grain = 4;  // bytes per cell: words, until a smaller access makes bytes of them
    uint64_t bytes_read = 0, bytes_written = 0;

    size_t cell_count() const { return (bytes + grain - 1) / grain; }
    bool holds(const volatile char* at, size_t count = 1) const { return at >= begin && at + count <= begin + bytes; }
};

// Fresh pages come zeroed from the system, and only those that are touched cost memory.
inline Cell* make_cells(size_t count) {
    if (!count) return nullptr;
    void* cells = mmap(nullptr, count * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cells == MAP_FAILED) stop_launch("too large", "no memory to watch this launch's buffers; use a smaller workload", Site{nullptr, 0, 0});
    return static_cast<Cell*>(cells);
}

inline void drop_cells(const Watch& watch) {
    if (watch.cells) munmap(watch.cells, watch.cell_count() * sizeof(Cell));
}

inline void save_cells(const Watch& watch, SavedCells& saved) {
    saved.cells.assign(watch.cells, watch.cells + (watch.cells ? watch.cell_count() : 0));
    saved.grain = watch.grain;
}

inline void restore_cells(const Watch& watch, const SavedCells& saved) {
    if (saved.cells.empty()) return;
    if (watch.grain == saved.grain) {
        std::copy(saved.cells.begin(), saved.cells.end(), watch.cells);
        return;
    }
    for (size_t i = 0; i < watch.cell_count(); ++i) watch.cells[i] = saved.cells[i * watch.grain / saved.grain];
}

static __attribute__((noinline)) void watch_bytes(Watch& watch) {
    Cell* words = watch.cells;
    const size_t count = watch.cell_count();
    Cell* cells = make_cells(watch.bytes);
    for (size_t i = 0; i < watch.bytes; ++i)
        if (words[i / 4].write_segment || words[i / 4].read_segment[0]) cells[i] = words[i / 4];
    munmap(words, count * sizeof(Cell));
    watch.grain = 1;
    watch.cells = cells;
}

struct Regions {
    std::vector<Watch> globals;  // by address
    Watch static_shared, dynamic_shared;
    Watch* last = nullptr;
    Watch* recent[1024] = {};  // by the instruction that accessed it last
};

static Regions regions;

inline Watch*& recent_region(uint32_t code) { return regions.recent[code % 1024]; }

inline Watch make_watch(char* begin, size_t bytes, int argument, Space space, const char* name) {
    Watch watch;
    watch.begin = begin;
    watch.bytes = bytes;
    watch.argument = argument;
    watch.space = space;
    watch.name = name;
    watch.cells = make_cells(watch.cell_count());
    return watch;
}

inline void open_regions(const Request& request, char* fixed, size_t fixed_bytes, const Symbol* symbols, size_t symbol_count) {
    for (int i = 0; i < request.buffer_count; ++i)
        regions.globals.push_back(make_watch(request.buffers[i].begin, request.buffers[i].bytes, request.buffers[i].argument, Space::Global, ""));
    for (size_t i = 0; i < symbol_count; ++i)
        regions.globals.push_back(make_watch(static_cast<char*>(symbols[i].address), symbols[i].bytes, -1, Space::Global, symbols[i].name));
    std::sort(regions.globals.begin(), regions.globals.end(), [](const Watch& a, const Watch& b) { return a.begin < b.begin; });
    regions.static_shared = make_watch(fixed, fixed_bytes, -1, Space::Shared, "static shared memory");
    regions.dynamic_shared = make_watch(cuda_cpu::dynamic_shared, request.shared_bytes, -1, Space::Shared, "dynamic shared memory");
    regions.last = nullptr;
}

inline void close_regions() {
    for (const Watch& watch : regions.globals) drop_cells(watch);
    drop_cells(regions.static_shared);
    drop_cells(regions.dynamic_shared);
    regions = Regions{};
}

// What the last launch accessed can be asked for until the library is unloaded, or launches again.
struct ClosedAtUnload {
    ~ClosedAtUnload() { close_regions(); }
};

static ClosedAtUnload closed_at_unload;

// The last region that begins at or before the address.
inline Watch* region_before(const volatile char* at) {
    auto next = std::upper_bound(regions.globals.begin(), regions.globals.end(), at,
                                 [](const volatile char* a, const Watch& watch) { return a < watch.begin; });
    return next == regions.globals.begin() ? nullptr : &*(next - 1);
}

inline Watch* find_global(const volatile char* at) {
    if (regions.last && regions.last->holds(at)) return regions.last;
    Watch* watch = region_before(at);
    if (!watch || !watch->holds(at)) return nullptr;
    return regions.last = watch;
}

inline bool in_library(const volatile char* at) { return at >= __ehdr_start && at < _end; }

}  // namespace cuda_cpu
