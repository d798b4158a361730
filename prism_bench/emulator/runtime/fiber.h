// Fibers: a hand-written context switch, and stacks with a guard page from one reserved address range.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

// Saves the callee-saved registers on the running stack, its top in *save, and continues from `load`.
extern "C" void cuda_cpu_switch(void** save, void* load);
extern "C" void cuda_cpu_first_step();

#if defined(__x86_64__)
asm(R"(
.text
.hidden cuda_cpu_switch
.globl cuda_cpu_switch
cuda_cpu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.hidden cuda_cpu_first_step
.globl cuda_cpu_first_step
cuda_cpu_first_step:
    callq *%rbx
    hlt
)");
#elif defined(__aarch64__)
asm(R"(
.text
.hidden cuda_cpu_switch
.globl cuda_cpu_switch
cuda_cpu_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.hidden cuda_cpu_first_step
.globl cuda_cpu_first_step
cuda_cpu_first_step:
    blr x19
    brk #1
)");
#else
#error "the emulator's fibers know x86-64 and aarch64 only"
#endif

namespace cuda_cpu {

constexpr size_t page_bytes = 4096;
constexpr size_t stack_bytes = 128 * 1024;
constexpr size_t most_stacks = 65536;
constexpr size_t most_guarded = 16;
constexpr size_t stacks_opened = 1024;
constexpr size_t most_kept = 4096;

// Addresses are reserved at once, so that "is this a thread's local?" is one comparison.
struct StackArea {
    char* begin = nullptr;
    size_t made = 0;
    std::vector<char*> free;

    bool reserve() {
        if (begin) return true;
        void* area = mmap(nullptr, stack_bytes * most_stacks, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (area == MAP_FAILED) return false;
        begin = static_cast<char*>(area);
        return true;
    }

    bool holds(const volatile void* address) const {
        return static_cast<size_t>(static_cast<const volatile char*>(address) - begin) < stack_bytes * most_stacks;
    }

    // The lowest page of a stack stays unmapped: running over it faults instead of spoiling a neighbour. Guard pages
    // cost mappings, of which a process may have 65530 in all its libraries; beyond the first few stacks, which every
    // kernel uses, there are none.
    bool open_up(char* stack) const {
        if (made < most_guarded) return !mprotect(stack + page_bytes, stack_bytes - page_bytes, PROT_READ | PROT_WRITE);
        if (made != most_guarded && made % stacks_opened) return true;
        return !mprotect(stack, (stacks_opened - made % stacks_opened) * stack_bytes, PROT_READ | PROT_WRITE);
    }

    ~StackArea() {
        if (begin) munmap(begin, stack_bytes * most_stacks);
    }

    char* take() {
        if (!free.empty()) {
            char* stack = free.back();
            free.pop_back();
            return stack;
        }
        if (!reserve() || made == most_stacks) return nullptr;
        char* stack = begin + made * stack_bytes;
        if (!open_up(stack)) return nullptr;
        ++made;
        return stack;
    }

    // Gives the stacks of a large grid, which nobody runs on, back to the system; their addresses stay reserved. What may be
    // written to counts against the process's limit, which other libraries' stacks share.
    void trim() {
        if (made <= most_kept) return;
        char* end = begin + most_kept * stack_bytes;
        const size_t opened = (made + stacks_opened - 1) / stacks_opened * stacks_opened;
        mmap(end, (opened - most_kept) * stack_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        free.erase(std::remove_if(free.begin(), free.end(), [end](char* stack) { return stack >= end; }), free.end());
        made = most_kept;
    }

    void give_back(char* stack) { free.push_back(stack); }

    // Tops are spread over cache sets: stacks that are all aligned alike would evict each other.
    char* top(char* stack) const {
        size_t number = static_cast<size_t>(stack - begin) / stack_bytes;
        return stack + stack_bytes - 64 - (number * 320) % 4096;
    }
};

// Prepares a stack so that switching to the returned pointer calls `body`.
inline void* fresh_context(char* top, void (*body)()) {
    uintptr_t aligned = reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15);
    void** frame = reinterpret_cast<void**>(aligned);
#if defined(__x86_64__)
    // Nine words: the first step must begin with its stack aligned to 16 bytes.
    frame -= 9;
    for (int i = 0; i < 9; ++i) frame[i] = nullptr;
    frame[4] = reinterpret_cast<void*>(body);                 // rbx
    frame[6] = reinterpret_cast<void*>(cuda_cpu_first_step);  // the return address
#else
    frame -= 20;
    for (int i = 0; i < 20; ++i) frame[i] = nullptr;
    frame[0] = reinterpret_cast<void*>(body);                  // x19
    frame[11] = reinterpret_cast<void*>(cuda_cpu_first_step);  // x30
#endif
    return frame;
}

}  // namespace cuda_cpu
