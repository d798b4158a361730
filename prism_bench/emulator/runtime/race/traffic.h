// What a launch asks of memory: bytes per argument, sectors of global memory, wavefronts of shared memory.
#pragma once

#include "regions.h"

namespace cuda_cpu {

struct Totals {
    uint64_t global_requests, global_sectors, shared_requests, shared_wavefronts, atomics;
};

static Totals totals;

inline Stream& stream_of(WarpTraffic& warp, uint32_t code, uint32_t bytes, Space space) {
    const uint64_t key = uint64_t(code) << 32 | uint64_t(bytes) << 1 | (space == Space::Shared);
    const size_t count = warp.keys.size();
    for (size_t i = 0, at = warp.recent; i < count; ++i) {
        // A loop's accesses come round in the same order: the next stream is the likely one.
        if (++at >= count) at = 0;
        if (warp.keys[at] != key) continue;
        warp.recent = at;
        return warp.streams[at];
    }
    warp.keys.push_back(key);
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

// How many different 32-byte sectors the lanes touch.
inline uint32_t sectors(const WarpRequest& request, uint32_t bytes) {
    uint32_t found[128], count = 0;
    for (uint32_t lane = 0; lane < request.lanes; ++lane) {
        const uint32_t last = (request.places[lane] + bytes - 1) / 32;
        for (uint32_t sector = request.places[lane] / 32; sector <= last && count < 128; ++sector) {
            uint32_t i = count;
            while (i && found[i - 1] != sector) --i;
            if (!i) found[count++] = sector;
        }
    }
    return count;
}

// Each of the 32 banks gives one 4-byte word per pass; lanes that want the same word share it.
inline uint32_t wavefronts(const WarpRequest& request, uint32_t bytes) {
    uint32_t words[32][32], in_bank[32] = {}, most = 0;
    for (uint32_t lane = 0; lane < request.lanes; ++lane) {
        const uint32_t last = (request.places[lane] + bytes - 1) / 4;
        for (uint32_t word = request.places[lane] / 4; word <= last; ++word) {
            const uint32_t bank = word % 32;
            uint32_t i = in_bank[bank];
            while (i && words[bank][i - 1] != word) --i;
            if (i || in_bank[bank] == 32) continue;
            words[bank][in_bank[bank]++] = word;
            most = std::max(most, in_bank[bank]);
        }
    }
    return most;
}

inline void settle(Stream& stream) {
    for (const WarpRequest& request : stream.requests) {
        if (!request.lanes) continue;
        if (stream.space == Space::Global) {
            ++totals.global_requests;
            totals.global_sectors += sectors(request, stream.bytes);
        } else {
            ++totals.shared_requests;
            totals.shared_wavefronts += wavefronts(request, stream.bytes);
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
