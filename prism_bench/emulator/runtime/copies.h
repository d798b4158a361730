// Asynchronous copies: they happen when they are waited for, so that a missing wait shows.
#pragma once

#include "scheduler.h"

namespace cuda_cpu {

void copy_async(void* to, const void* from, size_t bytes, size_t zero_filled) {
    Uninterruptible section;
    Thread* self = scheduler.current;
    if (!self->copies) self->copies = new CopyQueue;
    CopyQueue& queue = *self->copies;
    queue.copies.push_back({to, from, static_cast<uint32_t>(bytes), static_cast<uint32_t>(zero_filled), queue.commits});
}

void commit_copies() {
    Uninterruptible section;
    Thread* self = scheduler.current;
    if (!self->copies) self->copies = new CopyQueue;
    ++self->copies->commits;
}

inline void carry_out(const PendingCopy& copy, const void* code) {
    const size_t copied = copy.bytes - copy.zero_filled;
    if (copied) observe_access(copy.from, copied, false, code);
    observe_access(copy.to, copy.bytes, true, code);
    if (scheduler.stopped) return;
    memcpy(copy.to, copy.from, copied);
    memset(static_cast<char*>(copy.to) + copied, 0, copy.zero_filled);
}

// Carries out all but the last `allowed_pending` committed groups.
void wait_for_copies(size_t allowed_pending) {
    Uninterruptible section;
    CopyQueue* queue = scheduler.current->copies;
    if (!queue || queue->commits < allowed_pending) return;
    const uint64_t first_kept = queue->commits - allowed_pending;
    size_t kept = 0;
    for (size_t i = 0; i < queue->copies.size(); ++i) {
        const PendingCopy copy = queue->copies[i];
        if (copy.group < first_kept) carry_out(copy, __builtin_return_address(0));
        else queue->copies[kept++] = copy;
    }
    queue->copies.resize(kept);
}

inline void drop_copies(Thread& thread) {
    delete thread.copies;
    thread.copies = nullptr;
}

}  // namespace cuda_cpu
