// Last words of a child process: where in a kernel it crashed.
#pragma once

#include <signal.h>

#include "library.h"

namespace cuda_cpu {

static char crash_stack[64 * 1024];

// Plain writes only: nothing else is safe here. The second time the signal ends the process.
static void tell_crash(int signal_number, siginfo_t* info, void* context) {
    char text[160];
    const Thread* thread = scheduler.current;
    const uint3 b = thread ? thread->block->index : uint3{}, t = thread ? thread->index : uint3{};
    // An x86 processor has one fault for a misaligned vector and for a number that is no address.
    const int number = signal_number == SIGSEGV && info->si_code == SI_KERNEL ? SIGBUS : signal_number;
    const int length = snprintf(text, sizeof text, "\ncrashed-at %d 0x%llx %u %u %u %u %u %u\n", number,
                                static_cast<unsigned long long>(code_offset(interrupted_at(context))), b.x, b.y, b.z, t.x, t.y, t.z);
    if (write(2, text, static_cast<size_t>(length)) < 0) _exit(1);
    signal(signal_number, SIG_DFL);
}

}  // namespace cuda_cpu

CUDA_CPU_EXPORT void cuda_cpu_tell_crashes() {
    stack_t stack{};
    stack.ss_sp = cuda_cpu::crash_stack;
    stack.ss_size = sizeof cuda_cpu::crash_stack;
    sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_sigaction = cuda_cpu::tell_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
}
