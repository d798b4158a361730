// For a timed launch's outputs: spoil a few places, make all random, compare, digest, nudge an input.
// An output is `count` elements of `size` bytes; of `pool` places in it, one in each of as many equal parts, `want`
// has what the verified launch left there.
// For its inputs: put one together from a block.

using u64 = unsigned long long;

__device__ u64 mixed(u64 z) {  // splitmix64
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

__device__ u64 load(const unsigned char* bytes, long long at, int size) {
    switch (size) {
        case 1: return bytes[at];
        case 2: return reinterpret_cast<const unsigned short*>(bytes)[at];
        case 4: return reinterpret_cast<const unsigned int*>(bytes)[at];
        default: return reinterpret_cast<const u64*>(bytes)[at];
    }
}

__device__ void store(unsigned char* bytes, long long at, int size, u64 value) {
    switch (size) {
        case 1: bytes[at] = static_cast<unsigned char>(value); break;
        case 2: reinterpret_cast<unsigned short*>(bytes)[at] = static_cast<unsigned short>(value); break;
        case 4: reinterpret_cast<unsigned int*>(bytes)[at] = static_cast<unsigned int>(value); break;
        default: reinterpret_cast<u64*>(bytes)[at] = value;
    }
}

__device__ long long place(int k, long long count, int pool, u64 key) {
    const long long first = count / pool * k + count % pool * k / pool;
    const long long next = count / pool * (k + 1) + count % pool * (k + 1) / pool;
    return first + static_cast<long long>(mixed(key + k) % static_cast<u64>(next - first));
}

__device__ bool chosen(int k, int pool, u64 key, int share) {
    return mixed(key ^ 0xa5a5a5a5ull) % pool == k || mixed(mixed(key) + k) % share == 0;
}

// The bit below the highest is a float's largest of the exponent: what has another there is far off.
__device__ u64 wrong(u64 want, int k, int size, u64 key) {
    const int bits = 8 * size;
    const u64 all = bits == 64 ? ~0ull : (1ull << bits) - 1;
    return (want ^ (mixed(key * 3 + k) | (1ull << (bits - 2)))) & all;
}

extern "C" __global__ void remember(const unsigned char* bytes, long long count, int size, int pool, u64 pool_key,
                                    u64* want) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < pool) want[k] = load(bytes, place(k, count, pool, pool_key), size);
}

extern "C" __global__ void spoil(unsigned char* bytes, long long count, int size, int pool, u64 pool_key,
                                 const u64* want, u64 key, int share) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < pool && chosen(k, pool, key, share))
        store(bytes, place(k, count, pool, pool_key), size, wrong(want[k], k, size, key));
}

// `noted` begins with how many differences there were; [sample, output, place, bits] of the first `room` follow.
extern "C" __global__ void compare(const unsigned char* bytes, long long count, int size, int pool, u64 pool_key,
                                   const u64* want, u64 key, int share, int rewritten, int sample, int output,
                                   u64* noted, int room) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= pool) return;
    const long long at = place(k, count, pool, pool_key);
    const u64 is = load(bytes, at, size);
    const bool stray = rewritten ? chosen(k, pool, key, share) && is == wrong(want[k], k, size, key) : is != want[k];
    if (!stray) return;
    const u64 slot = atomicAdd(noted, 1ull);
    if (slot >= static_cast<u64>(room)) return;
    u64* entry = noted + 1 + 4 * slot;
    entry[0] = sample;
    entry[1] = output;
    entry[2] = at;
    entry[3] = is;
}

// Every byte at random. `bytes` is aligned to 16.
extern "C" __global__ void overwrite_at_random(unsigned char* bytes, long long size, u64 key) {
    const long long stride = (long long)gridDim.x * blockDim.x, first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (long long i = first; i < size / 8; i += stride) reinterpret_cast<u64*>(bytes)[i] = mixed(key + i);
    for (long long i = size / 8 * 8 + first; i < size; i += stride) bytes[i] = static_cast<unsigned char>(mixed(key + i));
}

// Runs of `length` elements, each one of a block's `runs`, which begin at multiples of `step`: as `inputs.Runs` has them.
extern "C" __global__ void choose(unsigned char* bytes, long long count, int size, const unsigned char* block, u64 key,
                                  long long length, long long step, u64 runs) {
    const long long stride = (long long)gridDim.x * blockDim.x, first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (long long i = first; i < count; i += stride) {
        const long long run = length == 1 ? i : i / length;
        const long long chosen = static_cast<long long>((mixed(key + run) >> 32) * runs >> 32);
        const long long from = chosen * step + (i - run * length);
        if (size == 16)
            reinterpret_cast<ulonglong2*>(bytes)[i] = reinterpret_cast<const ulonglong2*>(block)[from];
        else
            store(bytes, i, size, load(block, from, size));
    }
}

// Added to a sum: a number for every eight bytes and where they stand, so that the order of threads does not matter.
extern "C" __global__ void digest(const unsigned char* bytes, long long size, u64* sums, int output) {
    const long long stride = (long long)gridDim.x * blockDim.x, first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    u64 own = 0;
    for (long long i = first; i < size / 8; i += stride)
        own += mixed(reinterpret_cast<const u64*>(bytes)[i] + 0x9e3779b97f4a7c15ull * (i + 1));
    for (long long i = size / 8 * 8 + first; i < size; i += stride) own += mixed(bytes[i] + 0xd1342543de82ef95ull * (i + 1));
    if (own) atomicAdd(sums + output, own);
}

// One element of an input changes by a unit in the last place, towards zero, so that it leaves no range: the first with
// an odd last bit from a random place on. The one of before is put back. `state`: is one changed, where, what it was, how
// many there were, key.
extern "C" __global__ void nudge(unsigned char* bytes, long long count, int size, u64* state, int reach, int only_mend) {
    if (state[0]) store(bytes, static_cast<long long>(state[1]), size, state[2]);
    state[0] = 0;
    if (only_mend) return;
    const long long first = static_cast<long long>(mixed(state[4] + state[3]++) % static_cast<u64>(count));
    for (long long at = first; at < count && at < first + reach; ++at) {
        const u64 value = load(bytes, at, size);
        if (!(value & 1)) continue;
        store(bytes, at, size, value ^ 1);
        state[1] = at;
        state[2] = value;
        state[0] = 1;
        return;
    }
}
