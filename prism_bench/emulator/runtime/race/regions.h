// What lies where: device buffers, shared memory of the running block, global variables; and each byte's last accesses.
#pragma once

#include <algorithm>

#include "order.h"

extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" const char _end[] __attribute__((visibility("hidden")));

namespace cuda_cpu {

constexpr uint32_t atomic_flag = 0x80000000u;

enum class Space { Global, Shared };

struct Watch {
    char* begin = nullptr;
    size_t bytes = 0;
    int argument = -1;
    Space space = Space::Global;
    const char* name = "";
    Cell* cells = nullptr;
    uint64_t bytes_read = 0, bytes_written = 0;

    bool holds(const volatile char* at) const { return static_cast<size_t>(at - begin) < bytes; }
};

// Fresh pages come zeroed from the system, and only those that are touched cost memory.
inline Cell* make_cells(size_t bytes) {
    if (!bytes) return nullptr;
    void* cells = mmap(nullptr, bytes * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return cells == MAP_FAILED ? nullptr : static_cast<Cell*>(cells);
}

struct Regions {
    std::vector<Watch> globals;  // by address
    Watch static_shared, dynamic_shared;
    Watch* last = nullptr;
};

static Regions regions;

inline Watch make_watch(char* begin, size_t bytes, int argument, Space space, const char* name) {
    Watch watch;
    watch.begin = begin;
    watch.bytes = bytes;
    watch.argument = argument;
    watch.space = space;
    watch.name = name;
    watch.cells = make_cells(bytes);
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
    for (Watch& watch : regions.globals)
        if (watch.cells) munmap(watch.cells, watch.bytes * sizeof(Cell));
    for (Watch* watch : {&regions.static_shared, &regions.dynamic_shared})
        if (watch->cells) munmap(watch->cells, watch->bytes * sizeof(Cell));
    regions = Regions{};
}

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
