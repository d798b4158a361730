#pragma once

// Disjoint sets of numbers, joined by all threads at once: parent[i] is a number of i's set, at most i, and i at its root.

/// The root of a number while others are being joined: a parent only ever becomes a smaller one of the same set.
/// On the way each but the last gets its grandparent as parent.
__device__ inline int root_of(int* parent, int i) {
    volatile int* const now = parent;
    int next = now[i];
    while (next != i) {
        const int after = now[next];
        if (after != next) atomicMin(parent + i, after);
        i = next;
        next = after;
    }
    return i;
}

/// The same when nothing is joined any more.
__device__ inline int settled_root(const int* parent, int i) {
    for (int next = parent[i]; next != i; next = parent[i]) i = next;
    return i;
}

/// Joins two sets: the larger root gets the smaller one as its parent.
__device__ inline void join(int* parent, long long one, long long other) {
    int a = root_of(parent, static_cast<int>(one)), b = root_of(parent, static_cast<int>(other));
    while (a != b) {
        const int high = max(a, b), low = min(a, b);
        const int held = atomicMin(parent + high, low);
        if (held == high) return;
        a = root_of(parent, held);
        b = low;
    }
}
