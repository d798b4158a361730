// The watchdog: a timer of this thread's CPU time ends what makes no progress, and takes turns in spin-waits.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "warp.h"

namespace cuda_cpu {

constexpr long tick_nanoseconds = 10'000'000;
// A launch that goes on making progress (an endless loop around a barrier) ends after this many patiences.
constexpr double most_patiences = 12;

struct Watchdog {
    timer_t timer{};
    volatile long idle_ticks = 0;
    volatile long all_ticks = 0;
    volatile long ticks_since_switch = 0;
    bool preempted = false;
};

// The latest polls of flags, to recognise a spin-wait by.
struct Polling {
    const volatile void* address = nullptr;
    const Thread* thread = nullptr;
    int fruitless = 0;
};

static Polling polling;

static Watchdog watchdog;

void note_progress() {
    watchdog.idle_ticks = 0;
    scheduler.progressed = true;
}

void watch_switch() { watchdog.ticks_since_switch = 0; }

inline double patience_ticks() { return scheduler.request.patience_seconds * 1e9 / tick_nanoseconds; }
inline bool out_of_time() { return watchdog.all_ticks > patience_ticks() * most_patiences; }
inline bool out_of_patience() { return watchdog.idle_ticks > patience_ticks() || out_of_time(); }

// The ELF header is where the library begins in memory; code is told as an offset from there.
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" const char _end[] __attribute__((visibility("hidden")));

inline uint64_t code_offset(const void* code) { return static_cast<uint64_t>(static_cast<const char*>(code) - __ehdr_start); }
inline bool is_own_code(const void* code) { return code >= __ehdr_start && code < _end; }

// The bounds of the emulator's own code, set by places.ld.
extern "C" const char __start_cuda_cpu_runtime[] __attribute__((visibility("hidden")));
extern "C" const char __stop_cuda_cpu_runtime[] __attribute__((visibility("hidden")));

inline bool is_runtime_code(const void* code) { return code >= __start_cuda_cpu_runtime && code < __stop_cuda_cpu_runtime; }

inline const void* interrupted_at(void* context) {
    const mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    return reinterpret_cast<const void*>(machine.gregs[REG_RIP]);
#else
    return reinterpret_cast<const void*>(machine.pc);
#endif
}

[[noreturn]] void end_without_progress(bool in_a_loop);

// Runs on the stack of the kernel's thread; the handler is left by switching away, so the signal stays unblocked.
static void tick(void* context) {
    watchdog.idle_ticks = watchdog.idle_ticks + 1;
    watchdog.all_ticks = watchdog.all_ticks + 1;
    watchdog.ticks_since_switch = watchdog.ticks_since_switch + 1;
    // Inside another library (printf, a sanitizer's report) a lock may be held.
    const void* code = interrupted_at(context);
    if (uninterruptible || !scheduler.current || !is_own_code(code)) return;
    // A late tick falls into the runtime: on the way back from it. As an access's code it lies behind what is meant.
    if (!is_runtime_code(code)) scheduler.current->spun_at = code_offset(code) + 1;
    // A thread that polls is ended where it polls, which says more.
    if (watchdog.ticks_since_switch < (watchdog.preempted ? 1 : 5) && !out_of_time()) return;
    // Where no place is known yet, the next tick will find one.
    if (out_of_time() || (out_of_patience() && scheduler.current->spun_at)) end_without_progress(true);
    watchdog.preempted = true;
    ++scheduler.current->block->spinning;
    suspend(State::Spinning, "a loop", Site{nullptr, 0, 0});
}

// Modules share one signal, so the handler finds its module's own tick through the timer's value.
static void on_signal(int, siginfo_t* info, void* context) {
    if (info->si_code == SI_TIMER && info->si_value.sival_ptr) reinterpret_cast<void (*)(void*)>(info->si_value.sival_ptr)(context);
}

inline void start_watchdog() {
    watchdog = Watchdog{};
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    sigaction(SIGRTMIN + 7, &action, nullptr);
    struct sigevent event {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN + 7;
    event.sigev_value.sival_ptr = reinterpret_cast<void*>(tick);
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &watchdog.timer);
    const itimerspec every{{0, tick_nanoseconds}, {0, tick_nanoseconds}};
    timer_settime(watchdog.timer, 0, &every, nullptr);
}

inline void stop_watchdog() { timer_delete(watchdog.timer); }

void yield(const char* waiting_for, Site site) {
    uninterruptible = 1;
    scheduler.current->waiting_for = waiting_for;
    scheduler.current->site = site;
    if (out_of_patience()) end_without_progress(false);
    ++scheduler.current->block->spinning;
    suspend(State::Spinning, waiting_for, site);
}

// A poll is fruitless when it changed nothing; a few in a row at one address are a spin-wait.
void polled(const volatile void* address, bool changed, Site site) {
    const bool again = address == polling.address && scheduler.current == polling.thread;
    polling = {address, scheduler.current, changed || !again ? 0 : polling.fruitless + 1};
    if (polling.fruitless < 8) return;
    polling.fruitless = 0;
    yield("an atomic", site);
}

}  // namespace cuda_cpu
