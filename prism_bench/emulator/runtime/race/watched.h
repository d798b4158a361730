// What the race mode keeps about threads, blocks and bytes.
#pragma once

#include <memory>
#include <unordered_map>

#include "../scheduler.h"

namespace cuda_cpu {

struct Publication;
struct Flag;

// What a thread has learnt through atomics: of each flag, how many of its publications.
using Knowledge = std::unordered_map<const Flag*, size_t>;

// One thread's state between two of its synchronisations. Accesses point at it.
struct Segment {
    uint32_t block;
    uint32_t rank;
    uint32_t clock;
    uint32_t block_epoch;
    uint32_t grid_epoch;
};

struct Watched {
    uint32_t segment = 0;  // 0: to be made at the next access
    uint32_t clock = 1;
    std::shared_ptr<const Knowledge> knowledge;
    std::shared_ptr<const Publication> fenced;
    const Flag* published_to = nullptr;
};

// clocks[of] says up to which of that lane's clocks its accesses come before this lane's next one.
struct LaneClocks {
    uint32_t clocks[32][32] = {};
};

// Who touched a byte last: segments and code offsets, the top bit of which marks an atomic.
struct Cell {
    uint32_t write_segment, write_code;
    uint32_t read_segment[2], read_code[2];
};

enum class Space { Global, Shared };

// The lanes of a warp run one after another, so the n-th time that each passes a place in the code is one request.
struct WarpRequest {
    uint32_t lanes = 0;
    uint32_t places[32];  // addresses in units of a byte, 32 bits of them
};

struct Stream {
    uint32_t code = 0;
    uint32_t bytes = 0;
    Space space = Space::Global;
    uint32_t passed[32] = {};
    std::vector<WarpRequest> requests;
};

struct WarpTraffic {
    std::vector<Stream> streams;
    std::vector<uint64_t> keys;  // of each stream its place, size and space: a search reads these alone
    size_t recent = 0;
};

// The cells of shared memory while another block runs in it.
struct SavedCells {
    std::vector<Cell> cells;
    size_t grain = 0;
};

struct WatchedBlock {
    uint32_t number = 0;
    uint32_t epoch = 0;
    std::vector<Watched> threads;
    std::vector<std::unique_ptr<LaneClocks>> warps;
    std::vector<WarpTraffic> traffic;
    bool has_knowledge = false;
    // What was found in the knowledge searched last, which mostly all threads share: before which epoch of a block all is known.
    std::shared_ptr<const Knowledge> searched;
    std::unordered_map<uint32_t, uint32_t> known_epochs;
    SavedCells saved_static, saved_dynamic;
};

inline WatchedBlock& watched(const Block& block) { return *reinterpret_cast<WatchedBlock*>(block.observer_slot); }
inline Watched& watched(const Thread& thread) { return *static_cast<Watched*>(thread.observed); }

}  // namespace cuda_cpu
