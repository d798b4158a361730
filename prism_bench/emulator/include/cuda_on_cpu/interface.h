// What a kernel asks of the runtime: barriers, warp collectives, waiting, and the end of a launch.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Code of the emulator itself must stay invisible to the checks that watch a kernel's accesses. CUDA_CPU_UNWATCHED is for
// functions that such code calls, and that may be inlined there.
#if defined(__SANITIZE_THREAD__)
#define CUDA_CPU_UNWATCHED __attribute__((no_sanitize("thread")))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CUDA_CPU_UNWATCHED __attribute__((no_sanitize("thread")))
#endif
#endif
#ifdef CUDA_CPU_UNWATCHED
#define CUDA_CPU_UNCHECKED CUDA_CPU_UNWATCHED __attribute__((noinline))
#else
#define CUDA_CPU_UNWATCHED
#define CUDA_CPU_UNCHECKED inline
#endif

namespace cuda_cpu {

// A place in the source. `counter` tells apart two barriers on one line.
struct Site {
    const char* file;
    int line;
    int counter;

    // As a default argument this names the place of the call.
    static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line, 0}; }
};

// What the lanes of one warp brought to a collective: a pointer into each arrived lane's own stack.
struct Gathering;
using Combine = void (*)(Gathering&);

struct Gathering {
    unsigned mask;
    unsigned arrived;
    void* slots[32];
    const char* name;
    Site site;
    Combine combine;
};

// Returns once every living lane of `mask` has called it; the last one runs `combine` for all.
void warp_collective(unsigned mask, const char* name, void* slot, Combine combine, Site site);
void block_barrier(Site site);
// The barrier that also counts (0), ands (1) or ors (2) a predicate over the block.
int block_barrier_reduce(int kind, int predicate, Site site);
// Arrives at a barrier for some of the block's warps, and unless it only arrives waits for the others.
void named_barrier(unsigned id, unsigned threads, bool waits, Site site);
void grid_barrier(Site site);

// The caller is about to `return`; written before each such statement of a kernel's source.
void leave_early();

// Stops the launch unless its block has at most `most_threads` threads; written where a kernel with __launch_bounds__
// begins. Bounds after the first are no limits of a launch.
void check_launch_bounds(Site site, unsigned most_threads, ...);
// Stops the launch where a device does: above 8 blocks of a cluster, or where its extents do not divide the grid's.
void check_cluster_dims(Site site, unsigned x, unsigned y = 1, unsigned z = 1);

unsigned lane_index();
// The lanes that take the caller's way: those that reach this call before they wait for something else, or end.
unsigned converged_lanes(const char* name, Site site);

// Lets other threads run; the caller is waiting for one of them.
void yield(const char* waiting_for, Site site);
// Counts fruitless polls of one address and yields when they look like a spin-wait.
void polled(const volatile void* address, bool changed, Site site);

void fence();
void atomic_access(const volatile void* address, size_t bytes);

void copy_async(void* to, const void* from, size_t bytes, size_t zero_filled);
void commit_copies();
void wait_for_copies(size_t allowed_pending);

// A 32-bit address of shared memory, and back.
uint32_t shared_address(const void* pointer);
void* shared_pointer(uint64_t address);

// Barriers that count arrivals and bytes of copies in a word of shared memory; `name` is the interface's. A test by parity,
// or by the phase that an arrival returned, carries out the copies that the phase still lacks; `waits` lets others run.
void mbarrier_init(void* barrier, uint32_t arrivals, Site site);
uint64_t mbarrier_arrive(const char* name, void* barrier, uint32_t arrivals, int64_t bytes, Site site, uint32_t dropped = 0);
bool mbarrier_test(const char* name, void* barrier, uint64_t phase, bool by_parity, bool waits, Site site);

// Bulk copies: loads happen when their barrier is waited for, stores when their group is, or at the thread's end.
struct Coordinates {
    int count;
    int32_t at[5];
};
void load_bulk(void* to, const void* from, uint32_t bytes, void* barrier, Site site);
void store_bulk(void* to, const void* from, uint32_t bytes, Site site);
void load_box(void* to, const void* map, Coordinates from, void* barrier, Site site);
void store_box(const void* map, Coordinates to, const void* from, Site site);
void commit_stores();
void wait_for_stores(size_t allowed_pending);

void report_undefined_lane(const Gathering& gathering, unsigned reader, unsigned source);
[[noreturn]] void stop_misaligned(const char* access, const volatile void* address, size_t alignment, Site site);
CUDA_CPU_UNWATCHED inline void require_aligned(const char* access, const volatile void* address, size_t alignment, Site site) {
    if (reinterpret_cast<uintptr_t>(address) % alignment) stop_misaligned(access, address, alignment, site);
}
[[noreturn]] void stop_launch(const char* kind, const char* message, Site site);

long long nanoseconds();

// A thread that others waited for has come: the launch is not stuck.
void note_progress();

// Set while a thread must not be preempted: it is inside the runtime, or in the middle of an atomic.
extern volatile int uninterruptible;

// The empty assembly keeps the compiler from moving accesses to memory out of the section.
struct Uninterruptible {
    CUDA_CPU_UNWATCHED Uninterruptible() {
        uninterruptible = 1;
        asm volatile("" ::: "memory");
    }
    CUDA_CPU_UNWATCHED ~Uninterruptible() {
        asm volatile("" ::: "memory");
        uninterruptible = before;
    }

    const int before = uninterruptible;
};

// CUDA's largest block may ask for 227 KB; one fixed place serves every block in turn.
constexpr size_t dynamic_shared_limit = 227 * 1024;
extern char dynamic_shared[dynamic_shared_limit + 4096];

}  // namespace cuda_cpu

#define CUDA_CPU_SITE (::cuda_cpu::Site{__FILE__, __LINE__, __COUNTER__})
#define CUDA_CPU_CALLER ::cuda_cpu::Site::here()
