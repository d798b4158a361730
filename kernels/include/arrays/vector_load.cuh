#pragma once

// 16-byte accesses to float arrays, and the walk of a whole grid over arrays of any length and alignment.

__device__ inline float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }

__device__ inline void store4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }

/// Streamed accesses mark their lines as first to leave the cache: for data that is touched once.
__device__ inline float4 load4_streamed(const float* p) { return __ldcs(reinterpret_cast<const float4*>(p)); }

__device__ inline void store4_streamed(float* p, float4 v) { __stcs(reinterpret_cast<float4*>(p), v); }

// Kept accesses ask both caches to evict their lines last, as torch.compile's first reads do: what is read stays in the L2
// cache while what is written drains, so that reads and writes of a large map disturb each other less. *p is not written
// before by the same kernel.
#if defined(CPU_CUDA) || __CUDA_ARCH__ < 800

__device__ inline float load_kept(const float* p) { return *p; }

__device__ inline float4 load4_kept(const float* p) { return load4(p); }

#else

__device__ inline unsigned long long evict_last() {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ inline float load_kept(const float* p) {
    float v;
    asm volatile("ld.global.L1::evict_last.L2::cache_hint.f32 %0, [%1], %2;"
                 : "=f"(v)
                 : "l"(__cvta_generic_to_global(p)), "l"(evict_last()));
    return v;
}

__device__ inline float4 load4_kept(const float* p) {
    float4 v;
    asm volatile("ld.global.L1::evict_last.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(__cvta_generic_to_global(p)), "l"(evict_last()));
    return v;
}

#endif

/// Bytes by which p lies past a 16-byte boundary.
__device__ inline int misalignment(const float* p) {
    return static_cast<int>(reinterpret_cast<unsigned long long>(p) & 15);
}

/// An array of n floats as `head` single floats, `vectors` aligned groups of four, and single floats again.
struct Span {
    long long head;
    long long vectors;

    /// How many floats stand outside the vectors, and the index of the i-th of them.
    __device__ long long singles(long long n) const { return n - 4 * vectors; }
    __device__ long long single(long long i) const { return i < head ? i : i + 4 * vectors; }
};

/// The span that fits every one of the arrays; all singles where they are not misaligned alike.
template <class... Others>
__device__ Span aligned_span(long long n, const float* first, const Others*... others) {
    const int offset = misalignment(first);
    const bool alike = ((misalignment(others) == offset) && ... && true);
    const long long head = (16 - offset) % 16 / 4;
    if (!alike || offset % 4 != 0 || n < head + 4) return {n, 0};
    return {head, (n - head) / 4};
}

/// This block's contiguous share of `count` items, a multiple of blockDim.x except at the end; any grid covers all.
struct Share {
    long long begin;
    long long end;
};

__device__ inline Share block_share(long long count) {
    const long long rounds = (count + static_cast<long long>(gridDim.x) * blockDim.x - 1)
                             / (static_cast<long long>(gridDim.x) * blockDim.x);
    const long long begin = blockIdx.x * rounds * blockDim.x;
    const long long end = begin + rounds * blockDim.x;
    return {begin, end < count ? end : count};
}

__device__ inline long long grid_thread() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }

__device__ inline long long grid_threads() { return static_cast<long long>(gridDim.x) * blockDim.x; }

/// Whether the k-th of a thread's vectors is there: in whole tiles all are.
struct Whole {
    __device__ bool operator()(int) const { return true; }
};

/// Hands this thread's part of `count` vectors to tile(at, apart, there): UNROLL vectors from `at`, `apart` from each other,
/// of which there(k) says whether the k-th exists. Tiles go to the `blocks` in turn, so that all blocks read side by
/// side: memory answers that faster than as many streams far apart. What is left for the last round is spread over all.
template <int UNROLL, class Tile>
__device__ void walk(long long count, Tile tile, unsigned int block = blockIdx.x, unsigned int blocks = gridDim.x) {
    const long long width = static_cast<long long>(blocks) * blockDim.x;
    long long begin = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#pragma unroll 1  // two tiles at once take more registers than full occupancy leaves
#endif
    for (; begin + UNROLL * width <= count; begin += UNROLL * width)
        tile(begin + static_cast<long long>(block) * UNROLL * blockDim.x + threadIdx.x, blockDim.x, Whole{});
    const long long at = begin + static_cast<long long>(block) * blockDim.x + threadIdx.x;
    if (at < count) tile(at, width, [=](int k) { return at + k * width < count; });
}

/// Hands this thread's part of the block's share to `many(at)`, UNROLL vectors at a time and blockDim.x apart, while
/// that many are left, and to `one(at)` singly at the end. It needs fewer registers than `walk`, and a short array is done
/// sooner: few blocks wait for a whole tile.
template <int UNROLL, class Many, class One>
__device__ void walk_share(Share share, Many many, One one) {
    long long at = share.begin + threadIdx.x;
    for (; at + (UNROLL - 1) * blockDim.x < share.end; at += UNROLL * blockDim.x) many(at);
#pragma unroll 1
    for (; at < share.end; at += blockDim.x) one(at);
}

/// f on each of the four.
template <class F>
__device__ float4 map4(float4 v, F f) {
    return make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
}

template <class F>
__device__ float4 map4(float4 u, float4 v, F f) {
    return make_float4(f(u.x, v.x), f(u.y, v.y), f(u.z, v.z), f(u.w, v.w));
}

/// Whether one vector for each thread of a 1-D grid does it: all arrays aligned, no more vectors than threads. Then the
/// bookkeeping of any grid and alignment can be left out, which a kernel of few operations an element notices.
template <class... Arrays>
__device__ bool one_vector_each(long long n, const Arrays*... arrays) {
    return ((misalignment(arrays) == 0) && ...) && n <= 4 * grid_threads();
}

/// y[i] = f(x[i]) for i < n, by a 1-D grid of any size; y may be x. One kept 16-byte load per thread and trip: more loads
/// in flight or streaming hints make a kernel that reads and writes slower.
template <class F>
__device__ void map_elements(const float* x, float* y, long long n, F f) {
    if (one_vector_each(n, x, y)) {
        const long long at = 4 * grid_thread();
        if (at + 4 <= n) store4(y + at, map4(load4_kept(x + at), f));
#pragma unroll 1
        for (long long i = at; at + 4 > n && i < n; ++i) y[i] = f(x[i]);
        return;
    }
    const Span span = aligned_span(n, x, y);
    const float* const from = x + span.head;
    float* const to = y + span.head;
#pragma unroll 1
    for (long long at = grid_thread(); at < span.vectors; at += grid_threads())
        store4(to + 4 * at, map4(load4_kept(from + 4 * at), f));
#pragma unroll 1
    for (long long i = grid_thread(); i < span.singles(n); i += grid_threads()) {
        const long long at = span.single(i);
        y[at] = f(x[at]);
    }
}

/// y[i] = f(a[i], b[i]) for i < n, as map_elements; y may be a or b.
template <class F>
__device__ void map_pairs(const float* a, const float* b, float* y, long long n, F f) {
    if (one_vector_each(n, a, b, y)) {
        const long long at = 4 * grid_thread();
        if (at + 4 <= n) store4(y + at, map4(load4_kept(a + at), load4_kept(b + at), f));
#pragma unroll 1
        for (long long i = at; at + 4 > n && i < n; ++i) y[i] = f(a[i], b[i]);
        return;
    }
    const Span span = aligned_span(n, a, b, y);
    const float* const first = a + span.head;
    const float* const second = b + span.head;
    float* const to = y + span.head;
#pragma unroll 1
    for (long long at = grid_thread(); at < span.vectors; at += grid_threads())
        store4(to + 4 * at, map4(load4_kept(first + 4 * at), load4_kept(second + 4 * at), f));
#pragma unroll 1
    for (long long i = grid_thread(); i < span.singles(n); i += grid_threads()) {
        const long long at = span.single(i);
        y[at] = f(a[at], b[at]);
    }
}

/// What to do after each tile of a walk: nothing.
struct Nothing {
    __device__ void operator()() const {}
};

/// Calls f(value, slot) for every float of this thread in the walk of `blocks` over the vectors of `from`, and after() when
/// UNROLL vectors are through; slot is 0 to 3, for four independent accumulators.
template <int UNROLL, class F, class After>
__device__ void visit_vectors(const float* from, long long vectors, F f, After after, unsigned int block,
                              unsigned int blocks) {
    const auto tile = [&](long long at, long long apart, auto there) {
        float4 v[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            if (there(k)) v[k] = load4_streamed(from + 4 * (at + k * apart));
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            if (there(k)) f(v[k].x, 0), f(v[k].y, 1), f(v[k].z, 2), f(v[k].w, 3);
        after();
    };
    walk<UNROLL>(vectors, tile, block, blocks);
}

/// Calls f(x[i], slot) for every i < n of the grid's walk, and after() after every UNROLL vectors.
template <int UNROLL = 4, class F, class After = Nothing>
__device__ void visit_elements(const float* x, long long n, F f, After after = {}) {
    const Span span = aligned_span(n, x);
    visit_vectors<UNROLL>(x + span.head, span.vectors, f, after, blockIdx.x, gridDim.x);
#pragma unroll 1
    for (long long i = grid_thread(); i < span.singles(n); i += grid_threads()) f(x[span.single(i)], 0);
}

/// Calls f(x[i], slot) for every i < n, as visit_elements, each block for a contiguous share.
template <int UNROLL, class F>
__device__ void visit_shares(const float* x, long long n, F f) {
    const Span span = aligned_span(n, x);
    const float* const from = x + span.head;
    const auto four = [&](float4 v) { f(v.x, 0), f(v.y, 1), f(v.z, 2), f(v.w, 3); };
    const auto many = [&](long long at) {
        float4 v[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) v[k] = load4_streamed(from + 4 * (at + k * blockDim.x));
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) four(v[k]);
    };
    walk_share<UNROLL>(block_share(span.vectors), many, [&](long long at) { four(load4(from + 4 * at)); });
#pragma unroll 1
    for (long long i = grid_thread(); i < span.singles(n); i += grid_threads()) f(x[span.single(i)], 0);
}

/// Calls f(x[i], slot) for every i < n, all of them by this block alone.
template <int UNROLL = 4, class F>
__device__ void visit_by_block(const float* x, long long n, F f) {
    const Span span = aligned_span(n, x);
    visit_vectors<UNROLL>(x + span.head, span.vectors, f, Nothing{}, 0, 1);
#pragma unroll 1
    for (long long i = threadIdx.x; i < span.singles(n); i += blockDim.x) f(x[span.single(i)], 0);
}

/// Calls f(a[i], b[i], slot) for every i < n, as visit_elements.
template <int UNROLL = 4, class F, class After = Nothing>
__device__ void visit_pairs(const float* a, const float* b, long long n, F f, After after = {}) {
    const Span span = aligned_span(n, a, b);
    const float* const first = a + span.head;
    const float* const second = b + span.head;
    const auto tile = [&](long long at, long long apart, auto there) {
        float4 u[UNROLL], v[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            if (!there(k)) continue;
            u[k] = load4_streamed(first + 4 * (at + k * apart));
            v[k] = load4_streamed(second + 4 * (at + k * apart));
        }
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            if (there(k))
                f(u[k].x, v[k].x, 0), f(u[k].y, v[k].y, 1), f(u[k].z, v[k].z, 2), f(u[k].w, v[k].w, 3);
        after();
    };
    walk<UNROLL>(span.vectors, tile);
#pragma unroll 1
    for (long long i = grid_thread(); i < span.singles(n); i += grid_threads()) {
        const long long at = span.single(i);
        f(a[at], b[at], 0);
    }
}
