#pragma once

// Programmatic dependent launch: a launch that the host plan marks `overlaps` begins while the one before it ends. Its
// kernel calls await_last_launch() before it touches what that one reads or writes; then its start costs no time.

#if !defined(CPU_CUDA) && __CUDA_ARCH__ >= 900

/// The next launch may begin when every block of this one has called it or ended.
__device__ inline void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;"); }

/// Waits until the launch before has ended and its writes can be read; returns at once if this one does not overlap it.
__device__ inline void await_last_launch() { asm volatile("griddepcontrol.wait;" : : : "memory"); }

#else

__device__ inline void let_next_begin() {}
__device__ inline void await_last_launch() {}

#endif
