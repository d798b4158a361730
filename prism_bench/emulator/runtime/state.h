// The threads, warps and blocks of one launch, and what the launch was asked to do.
#pragma once

#include <stdint.h>

#include <string>
#include <vector>

#include "../include/cuda_on_cpu/builtins.h"
#include "../include/cuda_on_cpu/entry.h"
#include "fiber.h"

// The bounds of all static shared memory, set by places.ld.
extern "C" {
extern char __start_cuda_cpu_shared[] __attribute__((visibility("hidden")));
extern char __stop_cuda_cpu_shared[] __attribute__((visibility("hidden")));
}

namespace cuda_cpu {

inline size_t static_shared_bytes() { return static_cast<size_t>(__stop_cuda_cpu_shared - __start_cuda_cpu_shared); }

enum class State : uint8_t { New, Ready, AtBlockBarrier, AtNamedBarrier, AtWarp, AtGridBarrier, Spinning, Finished };

struct Block;

// An asynchronous copy that has been asked for and not yet been waited for; `group` says which commit it belongs to.
struct PendingCopy {
    void* to;
    const void* from;
    uint32_t bytes, zero_filled;
    uint64_t group;
};

// An array as a tensor map describes it, the innermost dimension first: made by Python, 128 bytes with what is unused.
struct BoxMap {
    uint64_t mark;
    char* base;
    uint64_t extents[5], pitches[5];  // elements, bytes
    uint32_t box[5];
    uint8_t element_bytes, rank, swizzled, tf32;
};

// A bulk copy that has not been waited for: of a box of an array, or of bytes as a box of pieces of 16 bytes.
struct BulkCopy {
    BoxMap map;
    int32_t at[5];
    char* shared;
    uint32_t bytes;
    void* barrier;  // that counts the bytes of a load
    uint64_t group;  // of a store
    const void* code;
};

struct CopyQueue {
    std::vector<PendingCopy> copies;
    uint64_t commits = 0;
    std::vector<BulkCopy> stores;
    uint64_t store_commits = 0;
};

struct Thread {
    void* context = nullptr;
    char* stack = nullptr;
    Block* block = nullptr;
    CopyQueue* copies = nullptr;
    uint3 index{};
    uint32_t rank = 0;
    State state = State::New;
    uint8_t named = 0;  // the named barrier at which it waits
    bool returned = false;  // by a `return` since its last barrier: it has exited, and barriers do without it
    const char* waiting_for = "";
    Site site{};
    unsigned converged = 0;  // the lanes that were with it when it last asked
    void* observed = nullptr;  // what the race mode keeps about it
    uint64_t spun_at = 0;  // where in the kernel's code a loop was last seen: as an access's code
};

// Lanes that asked, by the same calls, which lanes are with them.
struct Meeting {
    uint64_t path;
    unsigned lanes;
};

struct Warp {
    unsigned present = 0;
    unsigned finished = 0;
    unsigned ran_past = 0;  // the lanes that ended at the kernel's last brace
    std::vector<Gathering> gatherings;
    std::vector<Meeting> meetings;
};

// One of a block's barriers for some of its warps.
struct NamedBarrier {
    uint32_t arrived = 0, threads = 0;
    int line = 0;
};
constexpr unsigned named_barriers = 16;

struct Block {
    uint3 index{};
    uint64_t number = 0;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    std::vector<uint32_t> order;
    uint32_t ready[1024];  // a ring: each thread stands in it once at most
    uint32_t ready_head = 0, ready_count = 0;
    uint32_t next_new = 0;
    uint32_t alive = 0;
    uint32_t ran_past = 0;  // threads that ended at the kernel's last brace
    const Thread* first_past = nullptr;
    uint32_t at_barrier = 0;
    uint32_t at_grid = 0;
    uint32_t spinning = 0;
    Site barrier_site{};
    NamedBarrier named[named_barriers];
    int predicates_true = 0, predicates_seen = 0;
    int barrier_true = 0, barrier_seen = 0;
    std::vector<BulkCopy> loads;  // that no thread has waited for
    std::vector<char> saved_shared;
    uint64_t observer_slot = 0;
};

struct Buffer {
    char* begin;
    uint64_t bytes;
    int32_t argument;
    int32_t reserved;
};

// Laid out for ctypes.
struct Request {
    int32_t entry;
    uint32_t grid[3];
    uint32_t block[3];
    int32_t cooperative;
    int32_t order;  // 0 forward, 1 reverse, 2 shuffled
    int32_t buffer_count;
    int32_t counts_traffic;
    uint64_t shared_bytes;
    uint64_t seed;
    double patience_seconds;
    void** arguments;
    const Buffer* buffers;
};

// One side of a finding: who, where. `code` is an offset into the library when file is not known.
struct Access {
    uint32_t block[3];
    uint32_t thread[3];
    int32_t line;
    int32_t is_write;
    uint64_t code;
    char file[256];
};

constexpr int64_t no_offset = INT64_MIN;

struct Finding {
    char kind[32];
    char message[1024];
    int64_t offset;  // of the first byte in the argument; negative before its beginning, no_offset where unknown
    int32_t argument;
    int32_t accesses;
    Access access[2];
};

}  // namespace cuda_cpu
