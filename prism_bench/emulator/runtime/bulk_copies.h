// Bulk copies by the tensor memory accelerator, and the barriers that count their bytes.
#pragma once

#include "copies.h"

namespace cuda_cpu {

constexpr uint64_t box_map_mark = 0x70616d20786f6221;  // begins each tensor map that Python makes
constexpr int64_t most_expected = (1 << 20) - 1;

// Places within a page are those of the pointers: alignment and swizzle go by them.
inline uintptr_t shared_base() { return (reinterpret_cast<uintptr_t>(__start_cuda_cpu_shared) & ~uintptr_t(4095)) - 4096; }
uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer) - shared_base()); }
void* shared_pointer(uint64_t address) { return reinterpret_cast<void*>(shared_base() + static_cast<uint32_t>(address)); }

// An mbarrier: one word of shared memory.
struct Mbarrier {
    uint64_t expected : 20, lacking : 20;  // arrivals of each phase, and those that this one still needs
    int64_t bytes : 21;  // that copies still have to bring
    uint64_t phase : 3;
};

// One atomic change of a barrier; a phase that lacks nothing afterwards ends.
template <typename Change>
inline Mbarrier change_mbarrier(const char* name, void* barrier, Change change, Site site, const void* code) {
    require_aligned(name, barrier, sizeof(Mbarrier), site);
    observe_atomic(barrier, sizeof(Mbarrier), code);
    Mbarrier state;
    memcpy(&state, barrier, sizeof state);
    const Mbarrier before = state;
    change(state);
    if (!state.lacking && !state.bytes) {
        state.lacking = state.expected;
        ++state.phase;
        note_progress();
    }
    memcpy(barrier, &state, sizeof state);
    return before;
}

void mbarrier_init(void* barrier, uint32_t arrivals, Site site) {
    Uninterruptible section;
    require_aligned("mbarrier", barrier, sizeof(Mbarrier), site);
    if (!arrivals || arrivals > most_expected) stop_launch("mbarrier", "a barrier's phases have 1 to 1,048,575 arrivals", site);
    observe_access(barrier, sizeof(Mbarrier), true, __builtin_return_address(0));
    Mbarrier state{};
    state.expected = state.lacking = arrivals;
    memcpy(barrier, &state, sizeof state);
}

// Without arrivals it only adds to the bytes of the phase.
uint64_t mbarrier_arrive(const char* name, void* barrier, uint32_t arrivals, int64_t bytes, Site site, uint32_t dropped) {
    Uninterruptible section;
    if (arrivals) fence();
    const auto arrive = [=](Mbarrier& state) {
        if (state.lacking < arrivals) stop_launch(name, "more arrivals in one phase than init gave the barrier", site);
        if (state.bytes + bytes > most_expected) stop_launch(name, "a phase expects more than the 1,048,575 bytes that a barrier counts", site);
        state.bytes += bytes;
        state.lacking -= arrivals;
        state.expected -= dropped;
    };
    return change_mbarrier(name, barrier, arrive, site, __builtin_return_address(0)).phase;
}

// Calls `row` for each row of a box: its first byte in the box, its place in the array, and the bytes of it that are inside.
template <typename Row>
inline void each_row(const BulkCopy& copy, Row row) {
    const BoxMap& map = copy.map;
    const int64_t length = map.box[0], start = copy.at[0], size = map.element_bytes;
    for (int64_t offset = 0; offset < copy.bytes; offset += length * size) {
        char* place = map.base + start * size;
        bool inside = true;
        for (int64_t number = offset / (length * size), d = 1; d < map.rank; number /= map.box[d++]) {
            const int64_t index = copy.at[d] + number % map.box[d];
            inside = inside && index >= 0 && index < static_cast<int64_t>(map.extents[d]);
            place += index * static_cast<int64_t>(map.pitches[d]);
        }
        const int64_t first = std::min(std::max<int64_t>(-start, 0), length);
        const int64_t last = inside ? std::min(std::max(static_cast<int64_t>(map.extents[0]) - start, first), length) : first;
        row(offset, place, first * size, last * size);
    }
}

// The 16-byte pieces of each 128 bytes change places by the bits of their address.
inline char* place_in_box(const BulkCopy& copy, int64_t offset) {
    char* place = copy.shared + offset;
    return copy.map.swizzled ? reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(place) ^ (reinterpret_cast<uintptr_t>(place) >> 3 & 0x70)) : place;
}

inline void observe_pieces(const char* at, int64_t bytes, bool is_write, const void* code) {
    for (int64_t done = 0; done < bytes; done += 128) observe_access(at + done, static_cast<size_t>(std::min<int64_t>(bytes - done, 128)), is_write, code);
}

inline void round_to_tf32(char* place) {
    uint32_t bits;
    memcpy(&bits, place, sizeof bits);
    if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000u) & ~0x1fffu;
    memcpy(place, &bits, sizeof bits);
}

inline void carry_out_load(const BulkCopy& copy) {
    observe_pieces(copy.shared, copy.bytes, true, copy.code);
    const int64_t size = copy.map.element_bytes, length = copy.map.box[0] * size;
    each_row(copy, [&](int64_t offset, const char* from, int64_t first, int64_t last) {
        for (int64_t at = 0; at < length; at += size) {
            char* to = place_in_box(copy, offset + at);
            if (at < first || at >= last) memset(to, 0, static_cast<size_t>(size));
            else memcpy(to, from + at, static_cast<size_t>(size));
            if (copy.map.tf32) round_to_tf32(to);
        }
    });
}

inline void carry_out_store(const BulkCopy& copy) {
    observe_pieces(copy.shared, copy.bytes, false, copy.code);
    each_row(copy, [&](int64_t offset, char* to, int64_t first, int64_t last) {
        observe_pieces(to + first, last - first, true, copy.code);
        for (int64_t at = first; at < last; at += copy.map.element_bytes) memcpy(to + at, place_in_box(copy, offset + at), copy.map.element_bytes);
    });
}

// Carries out the loads of a barrier that a phase still lacks, as late as a device may: when all arrivals are there.
inline Mbarrier deliver(const char* name, void* barrier, Mbarrier state, Site site, const void* code) {
    std::vector<BulkCopy>& loads = scheduler.current->block->loads;
    for (size_t i = 0; i < loads.size() && !state.lacking;) {
        const BulkCopy copy = loads[i];
        if (copy.barrier != barrier) {
            ++i;
            continue;
        }
        loads.erase(loads.begin() + static_cast<long>(i));
        carry_out_load(copy);
        fence();
        change_mbarrier(name, barrier, [&](Mbarrier& changed) {
            if (changed.bytes < static_cast<int64_t>(copy.bytes)) stop_launch(name, "copies bring more bytes than the phase of their barrier expects", site);
            changed.bytes -= copy.bytes;
        }, site, code);
        memcpy(&state, barrier, sizeof state);
    }
    return state;
}

bool mbarrier_test(const char* name, void* barrier, uint64_t phase, bool by_parity, bool waits, Site site) {
    {
        Uninterruptible section;
        const void* code = __builtin_return_address(0);
        const Mbarrier state = change_mbarrier(name, barrier, [](Mbarrier&) {}, site, code);
        const auto is_over = [=](Mbarrier now) { return by_parity ? (now.phase ^ phase) & 1 : now.phase != phase; };
        if (is_over(state) || is_over(deliver(name, barrier, state, site, code))) return true;
    }
    if (waits) yield(name, site);
    else polled(barrier, false, site);
    return false;
}

inline void require_shared(const char* what, const void* place, uint32_t bytes, Site site) {
    const char* at = static_cast<const char*>(place);
    const bool fixed = at >= __start_cuda_cpu_shared && at + bytes <= __stop_cuda_cpu_shared;
    if (fixed || (at >= dynamic_shared && at + bytes <= dynamic_shared + sizeof dynamic_shared)) return;
    char text[160];
    snprintf(text, sizeof text, "%s: %u bytes that are not in shared memory", what, bytes);
    stop_launch("out of bounds", text, site);
}

inline BulkCopy bulk_copy(const void* shared, const void* global, uint32_t bytes, Site site, const void* code) {
    require_aligned("cp.async.bulk: its place in shared memory", shared, 16, site);
    require_aligned("cp.async.bulk: its place in global memory", global, 16, site);
    if (bytes % 16) {
        char text[120];
        snprintf(text, sizeof text, "cp.async.bulk copies %u bytes; it copies a multiple of 16", bytes);
        stop_launch("misaligned", text, site);
    }
    require_shared("cp.async.bulk", shared, bytes, site);
    BulkCopy copy{};
    copy.map = {box_map_mark, static_cast<char*>(const_cast<void*>(global)), {bytes / 16}, {16}, {bytes / 16}, 16, 1, 0, 0};
    copy.shared = static_cast<char*>(const_cast<void*>(shared));
    copy.bytes = bytes;
    copy.code = code;
    return copy;
}

inline BulkCopy box_copy(const void* shared, const void* map, const Coordinates& place, Site site, const void* code) {
    BulkCopy copy{};
    memcpy(&copy.map, map, sizeof copy.map);
    if (copy.map.mark != box_map_mark || copy.map.rank != place.count) {
        char text[120];
        snprintf(text, sizeof text, "cp.async.bulk.tensor.%dd: its map is no tensor map of %d dimension(s) of this launch", place.count, place.count);
        stop_launch("tensor map", text, site);
    }
    require_aligned("cp.async.bulk.tensor: its place in shared memory", shared, 128, site);
    memcpy(copy.at, place.at, sizeof copy.at);
    copy.shared = static_cast<char*>(const_cast<void*>(shared));
    copy.bytes = copy.map.element_bytes;
    for (int d = 0; d < copy.map.rank; ++d) copy.bytes *= copy.map.box[d];
    copy.code = code;
    require_shared("cp.async.bulk.tensor", shared, copy.bytes, site);
    return copy;
}

// What a load overwrites is gone from now on: a read before the wait shows.
inline void start_load(BulkCopy copy, void* barrier, Site site) {
    require_aligned("mbarrier", barrier, sizeof(Mbarrier), site);
    copy.barrier = barrier;
    each_row(copy, [&](int64_t, const char* from, int64_t first, int64_t last) { observe_pieces(from + first, last - first, false, copy.code); });
    observe_copy_start(copy.shared, copy.bytes, copy.code);
    fill_shared(copy.shared, copy.bytes);
    scheduler.current->block->loads.push_back(copy);
}

inline void start_store(BulkCopy copy) {
    Thread* self = scheduler.current;
    if (!self->copies) self->copies = new CopyQueue;
    copy.group = self->copies->store_commits;
    self->copies->stores.push_back(copy);
}

void load_bulk(void* to, const void* from, uint32_t bytes, void* barrier, Site site) {
    Uninterruptible section;
    start_load(bulk_copy(to, from, bytes, site, __builtin_return_address(0)), barrier, site);
}
void store_bulk(void* to, const void* from, uint32_t bytes, Site site) {
    Uninterruptible section;
    start_store(bulk_copy(from, to, bytes, site, __builtin_return_address(0)));
}
void load_box(void* to, const void* map, Coordinates from, void* barrier, Site site) {
    Uninterruptible section;
    start_load(box_copy(to, map, from, site, __builtin_return_address(0)), barrier, site);
}
void store_box(const void* map, Coordinates to, const void* from, Site site) {
    Uninterruptible section;
    start_store(box_copy(from, map, to, site, __builtin_return_address(0)));
}

void commit_stores() {
    Uninterruptible section;
    Thread* self = scheduler.current;
    if (!self->copies) self->copies = new CopyQueue;
    ++self->copies->store_commits;
}

inline void carry_out_stores(CopyQueue& queue, uint64_t first_kept) {
    size_t kept = 0;
    for (size_t i = 0; i < queue.stores.size(); ++i) {
        if (queue.stores[i].group < first_kept) carry_out_store(queue.stores[i]);
        else queue.stores[kept++] = queue.stores[i];
    }
    queue.stores.resize(kept);
}

void wait_for_stores(size_t allowed_pending) {
    Uninterruptible section;
    CopyQueue* queue = scheduler.current->copies;
    if (queue && queue->store_commits >= allowed_pending) carry_out_stores(*queue, queue->store_commits - allowed_pending);
}

// Stores of a thread that ends happen; its copies of other kinds do not.
inline void end_copies(Thread& thread) {
    carry_out_stores(*thread.copies, ~uint64_t(0));
    drop_copies(thread);
}

}  // namespace cuda_cpu
