#include "tensor_cores/tensor_tile.cuh"

// C = A_0 B_0 + A_1 B_1 + ... on every device, in one launch on each: device d has A_d [m, k] and B_d [k, n] in half. Tile t
// of C is owned by device t % devices. A block multiplies a tile, writes it to its owner's memory over the link, and then
// adds up a tile that its own device owns, of which all devices have written their parts, and writes the sum to all. So
// links carry what a ring carries, while the tensor cores work, and all devices hold the same bits.
//
// A block waits only for tiles of earlier rounds, and all blocks of a device are resident (cooperative launch), so waits
// end. Counters only grow: launch number `epoch` waits for `epoch` times what one launch adds.

constexpr int MULTIPLIES = 1, REDUCES = 2, WAITS = 4;  // what a launch does: all of it, but on one device in turn for all
constexpr long long MOST_TRIES = 1ll << 24;            // seconds: a device that never arrives ends the kernel

using Counter = unsigned long long;

extern __shared__ __align__(128) unsigned char stages[];

/// Addresses on every device, one after the other: parts of tiles, c, counters of the parts of each own tile, and the
/// counter of finished tiles.
struct Group {
    const unsigned long long* addresses;
    int me, devices;

    __device__ uint4* parts(int device) const { return reinterpret_cast<uint4*>(addresses[device]); }
    __device__ __half* c(int device) const { return reinterpret_cast<__half*>(addresses[devices + device]); }
    __device__ Counter* sent(int device) const { return reinterpret_cast<Counter*>(addresses[2 * devices + device]); }
    __device__ Counter* finished(int device) const { return reinterpret_cast<Counter*>(addresses[3 * devices + device]); }
};

__device__ inline void wait_for(const Counter* counter, Counter least) {
    for (long long tries = 0; load_from_host(counter) < least; ++tries) {
        if (tries == MOST_TRIES) __trap();
        __nanosleep(20);
    }
}

/// Count on another device what all threads of this block have written there.
__device__ inline void count_on(Counter* counter) {
    __threadfence_system();
    atomicAdd_system(counter, Counter(1));
}

/// A thread's sums of a tile as vectors of eight halves.
template <class T>
struct Packed {
    using Sums = float[T::ROWS][2 * T::COLS][4];
    static constexpr int VECTORS = T::ROWS * T::COLS, SIZE = VECTORS * T::THREADS;  // of a thread, of a tile

    __device__ static void write(uint4* part, const Sums& sum) {
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            __half2 pairs[4];
#pragma unroll
            for (int p = 0; p < 4; ++p) {
                const float* const two = sum[v / T::COLS][v % T::COLS * 2 + p / 2] + p % 2 * 2;
                pairs[p] = __floats2half2_rn(two[0], two[1]);
            }
            part[v * T::THREADS + threadIdx.x] = *reinterpret_cast<const uint4*>(pairs);
        }
    }

    __device__ static void add(const uint4* part, Sums& sum) {
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            const uint4 vector = __ldcg(part + v * T::THREADS + threadIdx.x);
            const __half2* const pairs = reinterpret_cast<const __half2*>(&vector);
#pragma unroll
            for (int p = 0; p < 4; ++p) {
                const float2 two = __half22float2(pairs[p]);
                float* const to = sum[v / T::COLS][v % T::COLS * 2 + p / 2] + p % 2 * 2;
                to[0] += two.x, to[1] += two.y;
            }
        }
    }
};

/// The tile in rows, so that it is written in whole pieces of 16 bytes.
template <class T>
__device__ void rows_to_shared(const float (&sum)[T::ROWS][2 * T::COLS][4], __half* shared) {
    constexpr int PITCH = T::N + 8;
    const WarpPlace<T> place;
#pragma unroll
    for (int i = 0; i < 2 * T::ROWS; ++i)
#pragma unroll
        for (int j = 0; j < 2 * T::COLS; ++j) {
            const int line = place.row + 8 * i + warp_lane() / 4, at = place.col + 8 * j + warp_lane() % 4 * 2;
            const float* const two = sum[i / 2][j] + i % 2 * 2;
            *reinterpret_cast<__half2*>(shared + line * PITCH + at) = __floats2half2_rn(two[0], two[1]);
        }
}

/// Writes the tile to c of every device, the next one first, so that no link has all of it at once.
template <class T>
__device__ void write_to_all(const Group& group, const __half* shared, const BlockTile& tile, int m, int n) {
    constexpr int PITCH = T::N + 8, ACROSS = T::N / 8;
    for (int v = threadIdx.x; v < T::M * ACROSS; v += T::THREADS) {
        const __half* const from = shared + v / ACROSS * PITCH + v % ACROSS * 8;
        const int line = tile.row * T::M + v / ACROSS, at = tile.col * T::N + v % ACROSS * 8;
        if (line >= m || at >= n) continue;
        for (int i = 1; i <= group.devices; ++i) {
            __half* const to = group.c((group.me + i) % group.devices) + static_cast<long long>(line) * n + at;
            if (n % 8 == 0) *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
            else
                for (int e = 0; e < min(8, n - at); ++e) to[e] = from[e];
        }
    }
}

/// Adds up the parts of a tile that this device owns, in the order of the devices, once all have written theirs.
template <class T>
__device__ void reduce_tile(const Group& group, int tile, int tile_rows, int tile_cols, int m, int n, Counter epoch) {
    const int own = tile / group.devices;
    if (threadIdx.x == 0) wait_for(group.sent(group.me) + own, epoch * group.devices);
    __syncthreads();
    float sum[T::ROWS][2 * T::COLS][4] = {};
    const uint4* const parts = group.parts(group.me) + static_cast<long long>(own) * group.devices * Packed<T>::SIZE;
    for (int device = 0; device < group.devices; ++device)
        Packed<T>::add(parts + static_cast<long long>(device) * Packed<T>::SIZE, sum);
    rows_to_shared<T>(sum, reinterpret_cast<__half*>(stages));
    __syncthreads();
    const BlockTile place(tile_rows, tile_cols, 16, tile);
    write_to_all<T>(group, reinterpret_cast<const __half*>(stages), place, m, n);
    __syncthreads();
    if (threadIdx.x == 0)
        for (int device = 0; device < group.devices; ++device) count_on(group.finished(device));
}

/// Multiplies a tile and writes it to the memory of its owner.
template <class T, int WIDTH>
__device__ void multiply_tile(const Group& group, const __half* a, const __half* b, int index, const BlockTile& tile,
                              int m, int n, int k) {
    using O = Operands<T, true, false, WIDTH>;
    using Word = typename O::Word;
    O source;
    source.left.start(reinterpret_cast<const Word*>(a), tile.row * T::M, m, k);
    source.right.start(reinterpret_cast<const Word*>(b), tile.col * T::N, n, k);
    float sum[T::ROWS][2 * T::COLS][4] = {};
    multiply_stages<MmaFragments<O>>(source, depth_tiles<T>(k), reinterpret_cast<Word*>(stages), sum);
    const int owner = index % group.devices;
    const long long slot = static_cast<long long>(index / group.devices) * group.devices + group.me;
    Packed<T>::write(group.parts(owner) + slot * Packed<T>::SIZE, sum);
    __syncthreads();
    if (threadIdx.x == 0) count_on(group.sent(owner) + index / group.devices);
}

template <class T, int WIDTH>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
matmul_all_reduce(const __half* a, const __half* b, const unsigned long long* addresses, int me, int devices, int m, int n,
                  int k, int epoch, int steps) {
    const Group group = {addresses, me, devices};
    const int tile_rows = (m + T::M - 1) / T::M, tile_cols = (n + T::N - 1) / T::N, tiles = tile_rows * tile_cols;
    const int grid = gridDim.x;
    int own = static_cast<int>(blockIdx.x) * devices + me;  // the next tile that this block adds up
    for (int tile = blockIdx.x; tile < tiles; tile += grid) {
        if (steps & MULTIPLIES)
            multiply_tile<T, WIDTH>(group, a, b, tile, BlockTile(tile_rows, tile_cols, 16, tile), m, n, k);
        const int multiplied = tile - static_cast<int>(blockIdx.x);  // the tiles of earlier rounds
        for (; (steps & REDUCES) && own < multiplied; own += grid * devices)
            reduce_tile<T>(group, own, tile_rows, tile_cols, m, n, epoch);
    }
    for (; (steps & REDUCES) && own < tiles; own += grid * devices)
        reduce_tile<T>(group, own, tile_rows, tile_cols, m, n, epoch);
    if ((steps & WAITS) && blockIdx.x == 0 && threadIdx.x == 0)
        wait_for(group.finished(me), static_cast<Counter>(epoch) * tiles);
}

/// Every device waits until all have arrived: the shortest that a launch on all can take.
extern "C" __global__ void meet(const unsigned long long* addresses, int me, int devices, int epoch, int steps) {
    const Group group = {addresses, me, devices};
    const int device = threadIdx.x;
    if (device < devices && (steps & REDUCES)) count_on(group.finished(device));
    if (device == 0 && (steps & WAITS)) wait_for(group.finished(me), static_cast<Counter>(epoch) * devices);
}
