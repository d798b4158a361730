// What a launch asks of memory: bytes per argument, sectors of global memory, wavefronts of shared memory.
#pragma once

#include "regions.h"

namespace cuda_cpu {

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

struct Totals {
    uint64_t global_requests, global_sectors, shared_requests, shared_wavefronts, atomics;
};

static Totals totals;

struct WarpTraffic {
    std::vector<Stream> streams;
    size_t recent = 0;
};

// By block slot and warp.
static std::unordered_map<const Block*, std::vector<WarpTraffic>> traffic;

inline Stream& stream_of(WarpTraffic& warp, uint32_t code, uint32_t bytes, Space space) {
    for (size_t i = 0; i < warp.streams.size(); ++i) {
        const size_t at = (warp.recent + i) % warp.streams.size();
        Stream& stream = warp.streams[at];
        if (stream.code == code && stream.space == space && stream.bytes == bytes) {
            warp.recent = at;
            return stream;
        }
    }
    warp.streams.emplace_back();
    warp.streams.back().code = code;
    warp.streams.back().bytes = bytes;
    warp.streams.back().space = space;
    return warp.streams.back();
}

inline void count_request(std::vector<WarpTraffic>& warps, const Thread& thread, const volatile char* at, size_t bytes, Space space, uint32_t code) {
    Stream& stream = stream_of(warps[thread.rank / 32], code, static_cast<uint32_t>(bytes), space);
    const uint32_t turn = stream.passed[thread.rank & 31]++;
    if (turn >= stream.requests.size()) stream.requests.resize(turn + 1);
    WarpRequest& request = stream.requests[turn];
    if (request.lanes < 32) request.places[request.lanes++] = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(at));
}

// Distinct units of `unit` bytes that the lanes touch, sorted; at most 32 lanes of 16 bytes in 4-byte units.
inline size_t distinct_units(const WarpRequest& request, uint32_t bytes, uint32_t unit, uint32_t* units) {
    size_t count = 0;
    for (uint32_t lane = 0; lane < request.lanes; ++lane) {
        const uint32_t first = request.places[lane] / unit, last = (request.places[lane] + bytes - 1) / unit;
        for (uint32_t at = first; at <= last && count < 256; ++at)
            if (!count || units[count - 1] != at) units[count++] = at;
    }
    std::sort(units, units + count);
    return static_cast<size_t>(std::unique(units, units + count) - units);
}

// Each of the 32 banks gives one 4-byte word per pass.
inline uint32_t wavefronts(const uint32_t* words, size_t count) {
    uint32_t in_bank[32] = {}, most = 0;
    for (size_t i = 0; i < count; ++i) most = std::max(most, ++in_bank[words[i] % 32]);
    return most;
}

inline void settle(Stream& stream) {
    uint32_t units[256];
    for (const WarpRequest& request : stream.requests) {
        if (!request.lanes) continue;
        if (stream.space == Space::Global) {
            ++totals.global_requests;
            totals.global_sectors += distinct_units(request, stream.bytes, 32, units);
        } else {
            ++totals.shared_requests;
            totals.shared_wavefronts += wavefronts(units, distinct_units(request, stream.bytes, 4, units));
        }
    }
    stream.requests.clear();
    memset(stream.passed, 0, sizeof stream.passed);
}

inline void settle_block(std::vector<WarpTraffic>& warps) {
    for (WarpTraffic& warp : warps)
        for (Stream& stream : warp.streams) settle(stream);
}

}  // namespace cuda_cpu
