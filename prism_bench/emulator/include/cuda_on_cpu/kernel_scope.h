// Included inside the unnamed namespace that holds a kernel's source: device versions hide the host's.
#ifndef CUDA_CPU_KERNEL_SCOPE
#define CUDA_CPU_KERNEL_SCOPE

// The watchdog must not take a thread away while the C library holds its lock.
template <typename... T>
int printf(const char* format, T... values) {
    cuda_cpu::Uninterruptible section;
    if constexpr (sizeof...(T) == 0) return fputs(format, stdout);
    else return ::printf(format, values...);
}

#endif

// <assert.h> may be included again and again, so this is repeated each time.
#undef assert
#define assert(condition) \
    ((condition) ? static_cast<void>(0) : ::cuda_cpu::stop_launch("assertion", "assertion failed: " #condition, CUDA_CPU_SITE))
