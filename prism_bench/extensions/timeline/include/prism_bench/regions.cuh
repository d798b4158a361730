// Regions inside a kernel, which `prism-bench timeline KERNEL` records. Everywhere else the macros expand to nothing.
//
//     PB_REGION("load");                  a region from here to the end of the scope
//     PB_REGION_BEGIN(wait, "wait");      a region from here to PB_REGION_END(wait), in the same scope or one inside it
//     PB_REGION_END(wait);
//
// A name is a string literal. Of the lanes that arrive together the lowest one records for all.
#pragma once

#ifndef PRISM_BENCH_REGIONS  // regions that a shard of the buffer has room for
#define PB_REGION(name)
#define PB_REGION_BEGIN(region, name)
#define PB_REGION_END(region)
#ifdef CPU_CUDA  // the emulator lists the variables below for every source that includes them
namespace prism_bench {
char region_records, region_counts, region_events;
}
#endif
#else

namespace prism_bench {

// Blocks take turns in using the shards, a power of two, so that their atomics seldom meet in one cache line.
constexpr unsigned region_shards = PRISM_BENCH_REGION_SHARDS, regions_of_shard = PRISM_BENCH_REGIONS;
constexpr unsigned region_line = 32;  // words of a cache line, of which the first counts the regions of a shard
constexpr unsigned region_unclosed = 1u << 31;

struct alignas(16) RegionRecord {
    unsigned long long end;  // cycles of the multiprocessor; on the emulator the number of the event
    unsigned length, global;  // cycles, or events, since the beginning; nanoseconds of the device, their lower half
    unsigned block, place, region, grid;  // place: region_unclosed, then the multiprocessor, then 5 bits of the warp
};

__device__ RegionRecord region_records[region_shards * regions_of_shard];
__device__ unsigned region_counts[region_shards * region_line];

// FNV-1a.
__host__ __device__ constexpr unsigned region_id(const char* name, unsigned hash = 2166136261u) {
    while (*name) hash = (hash ^ static_cast<unsigned char>(*name++)) * 16777619u;
    return hash;
}

#ifdef CPU_CUDA

__device__ unsigned long long region_events;

__device__ inline unsigned long long region_clock() { return atomicAdd(&region_events, 1ull) + 1; }

__device__ inline unsigned region_slot(unsigned* count, bool leads) { return leads ? atomicAdd(count, 1u) : ~0u; }

__device__ inline void region_write(RegionRecord* where, bool is_kept, RegionRecord record) {
    if (is_kept) *where = record;
}

#define PB_REGION_REGISTER_(function, name) __device__ inline unsigned function() { return 0; }

#else

__device__ __forceinline__ unsigned long long region_clock() {
    unsigned long long cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
    return cycles;
}

// By predicates, since branches may keep the compiler from overlapping matrix products of warpgroups.
// inc, not add: for an add the compiler would sum up the lanes first and wait for the result at once.
__device__ __forceinline__ unsigned region_slot(unsigned* count, bool leads) {
    unsigned slot = ~0u;
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n@p atom.relaxed.gpu.global.inc.u32 %0, [%1], 0x7fffffff;\n}"
                 : "+r"(slot)
                 : "l"(__cvta_generic_to_global(count)), "r"(static_cast<unsigned>(leads)));
    return slot;
}

__device__ __forceinline__ void region_write(RegionRecord* where, bool is_kept, RegionRecord record) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.u32 p, %1, 0;\n@p st.global.v4.u32 [%0], {%2, %3, %4, %5};\n"
        "@p st.global.v4.u32 [%0+16], {%6, %7, %8, %9};\n}" ::"l"(__cvta_generic_to_global(where)),
        "r"(static_cast<unsigned>(is_kept)), "r"(static_cast<unsigned>(record.end)),
        "r"(static_cast<unsigned>(record.end >> 32)), "r"(record.length), "r"(record.global), "r"(record.block),
        "r"(record.place), "r"(record.region), "r"(record.grid));
}

#define PB_REGION_REGISTER_(function, name)                  \
    __device__ __forceinline__ unsigned function() {        \
        unsigned value;                                     \
        asm volatile("mov.u32 %0, %%" name ";" : "=r"(value)); \
        return value;                                       \
    }

#endif

PB_REGION_REGISTER_(region_nanoseconds, "globaltimer_lo")
PB_REGION_REGISTER_(region_multiprocessor, "smid")
PB_REGION_REGISTER_(region_grid, "gridid")

template <unsigned id, bool ends_with_scope>
class Region {
public:
    // The record's place is reserved here and first needed at the end, so that a long region hides the wait for it.
    __device__ __forceinline__ Region() {
        const bool leads = thread() % 32 == static_cast<unsigned>(__ffs(__activemask()) - 1);
        slot_ = region_slot(&region_counts[shard() * region_line], leads);
        begin_ = static_cast<unsigned>(region_clock());
    }

    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;

    __device__ __forceinline__ ~Region() {
        if (is_open_) write(ends_with_scope ? 0 : region_unclosed);
    }

    __device__ __forceinline__ void end() {
        if (is_open_) write(0);
        is_open_ = false;
    }

private:
    __device__ static __forceinline__ unsigned thread() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    __device__ static __forceinline__ unsigned block() {
        return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    }
    __device__ static __forceinline__ unsigned shard() { return block() % region_shards; }

    __device__ __forceinline__ void write(unsigned flag) const {
        RegionRecord record;
        record.end = region_clock(), record.length = static_cast<unsigned>(record.end) - begin_;
        record.global = region_nanoseconds(), record.grid = region_grid();
        record.block = block(), record.region = id;
        record.place = flag | region_multiprocessor() << 5 | thread() / 32;
        region_write(&region_records[shard() * regions_of_shard + slot_], slot_ < regions_of_shard, record);
    }

    unsigned slot_, begin_;
    bool is_open_ = true;
};

}  // namespace prism_bench

#define PB_REGION_JOIN_(a, b) a##b
#define PB_REGION_NAME_(number) PB_REGION_JOIN_(pb_region_, number)
#define PB_REGION_TYPE_(name, scoped) ::prism_bench::Region<::prism_bench::region_id("" name), scoped>
#define PB_REGION(name) PB_REGION_TYPE_(name, true) PB_REGION_NAME_(__COUNTER__)
#define PB_REGION_BEGIN(region, name) PB_REGION_TYPE_(name, false) region
#define PB_REGION_END(region) (region).end()

#endif
