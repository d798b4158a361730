#pragma once

#include "tensor_cores/ptx.cuh"

// A kernel that serves a queue until it is told to stop. Block 0 keeps the desk: it waits for the host's next request and
// announces it; the others work, and the last of them to finish an item answers the host. An item is a program, kernels
// one after another with a barrier between them, whose arrays lie in one workspace. Requests and answers are one word
// each, a ticket and a number below it, so that they are there whole or not at all: tickets count from 1, ticket t has
// slot (t - 1) % slots. prism_bench/extensions/persistent/layout.py reads the constants from here.

using Word = unsigned long long;

constexpr int NUMBER_BITS = 24;          // of a request: the program; of an answer: the error
constexpr int STOP_PROGRAM = 0xffffff;   // serves what was asked before, then ends
constexpr int MOST_PROGRAM_WORDS = 256;  // of all programs together: they lie in shared memory

constexpr unsigned int KERNEL_ERRORS = 16;  // where the errors of kernels begin

constexpr unsigned long long ONE_FAILED = 1ull << 32;  // in ARRIVED: a block that failed, above those that arrived

enum DeskWord { ANNOUNCED, FINISHED, ARRIVED, FAILED, DESK_WORDS };
enum ItemError { NO_ERROR, NO_SUCH_PROGRAM, NO_SUCH_KERNEL };

// The programs: for each where it begins; there its stages one after another, in as many words as `length` says.
enum ProgramWord { STAGE_COUNT, MOST_BLOCKS, PROGRAM_STAGES };
enum StageWord { STAGE_LENGTH, STAGE_KERNEL, GRID_X, GRID_Y, GRID_Z, STAGE_ARGUMENTS };

/// Where a block stands in the grid of the kernel that it is called for, and the error that this kernel leaves.
struct GridPlace {
    uint3 block, grid;
    unsigned int error;
};

/// One thread writes it, and all wait for that at a barrier.
__device__ inline GridPlace& virtual_place() {
    __shared__ GridPlace place;
    return place;
}

__device__ inline Word ticket_of(Word message) { return message >> NUMBER_BITS; }
__device__ inline Word number_of(Word message) { return message & ((1ull << NUMBER_BITS) - 1); }

__device__ inline Word arrivals(Word arrived) { return arrived & (ONE_FAILED - 1); }
__device__ inline int slot_of(Word ticket, int slots) { return static_cast<int>(ticket) & (slots - 1); }

/// Between two looks at a word that another thread writes. The emulator's threads take turns here.
__device__ inline void wait_a_little() {
#ifdef CPU_CUDA
    __nanosleep(100);
#endif
}

/// Writes a word that others may be looking at.
__device__ inline void put(Word* word, Word value) { *static_cast<volatile Word*>(word) = value; }

/// What a kernel's argument is in a program: a number's bits, or an array's place in the workspace in bytes.
template <class T>
struct Argument {
    __device__ static T from(const Word* word, char*) { return *reinterpret_cast<const T*>(word); }
};
template <class T>
struct Argument<T*> {
    __device__ static T* from(const Word* word, char* workspace) { return reinterpret_cast<T*>(workspace + *word); }
};

template <int... I>
struct Positions {};
template <int N, int... I>
struct CountTo : CountTo<N - 1, N - 1, I...> {};
template <int... I>
struct CountTo<0, I...> {
    using type = Positions<I...>;
};

template <auto KERNEL, class... Args, int... I>
__device__ void call_at(void (*)(Args...), Positions<I...>, const Word* words, char* workspace) {
    KERNEL(Argument<Args>::from(words + I, workspace)...);
}

template <auto KERNEL, class... Args>
__device__ void call(void (*kernel)(Args...), const Word* words, char* workspace) {
    call_at<KERNEL>(kernel, typename CountTo<sizeof...(Args)>::type{}, words, workspace);
}

/// The kernel of that number for the block's place; false where there is none.
template <auto... KERNELS>
__device__ bool call_kernel(Word number, const Word* words, char* workspace) {
    Word counted = 0;
    return ((counted++ == number && (call<KERNELS>(KERNELS, words, workspace), true)) || ...);
}

/// Between two kernels of an item: until all `full` blocks that work on it have arrived, counted from its begin.
__device__ inline void meet(Word* arrived, Word full) {
    __syncthreads();
    if (threadIdx.x == 0 && arrivals(add_in_order(arrived, 1)) + 1 != full)
        while (arrivals(load_after(arrived)) < full) wait_a_little();
    __syncthreads();
}

/// Every `apart`-th block of a stage's grid, from `first` on; the error, 0 for none, in thread 0.
template <auto... KERNELS>
__device__ Word run_blocks(const Word* stage, unsigned int first, unsigned int apart, char* workspace) {
    const unsigned int x = stage[GRID_X], y = stage[GRID_Y], z = stage[GRID_Z];
    Word error = NO_ERROR;
    for (unsigned int block = first; block < x * y * z; block += apart) {
        if (threadIdx.x == 0) virtual_place() = {{block % x, block / x % y, block / x / y}, {x, y, z}, NO_ERROR};
        __syncthreads();
        const bool known = call_kernel<KERNELS...>(stage[STAGE_KERNEL], stage + STAGE_ARGUMENTS, workspace);
        __syncthreads();
        if (threadIdx.x == 0) error = max(error, Word(known ? virtual_place().error : NO_SUCH_KERNEL));
    }
    return error;
}

/// What a block has to know of the queue it works for.
struct Workplace {
    Word *answers, *desk;
    char* workspace;
    int slots;

    /// By thread 0 of the block that was the last to finish.
    __device__ void answer(Word ticket, bool failed) const {
        const Word error = failed ? load_after(desk + FAILED) : NO_ERROR;
        store_for_host(answers + slot_of(ticket, slots), ticket << NUMBER_BITS | error);
        put(desk + ARRIVED, 0);
        put(desk + FAILED, 0);
        store_in_order(desk + FINISHED, ticket);
    }
};

/// The block's part of an item: every kernel of the program, and then the answer, if nobody else is left to give it. A
/// block that works alone has nobody to meet.
template <auto... KERNELS>
__device__ void work_on(const Workplace& at, const Word* programs, Word item) {
    const Word number = number_of(item);
    const bool known = number < programs[0];  // where the first program begins: as many words as there are programs
    const Word* const program = programs + (known ? programs[number] : 0);
    const unsigned int worker = blockIdx.x - 1, workers = gridDim.x - 1;
    const unsigned int needed = known ? static_cast<unsigned int>(program[MOST_BLOCKS]) : 1, together = min(needed, workers);
    if (worker >= together) return;
    Word error = known ? NO_ERROR : NO_SUCH_PROGRAM;
    const Word stages = known ? program[STAGE_COUNT] : 0;
    const Word* stage = program + PROGRAM_STAGES;
    for (Word s = 0; s < stages; ++s, stage += stage[STAGE_LENGTH]) {
        if (s > 0 && together > 1) meet(at.desk + ARRIVED, s * together);
        error = max(error, run_blocks<KERNELS...>(stage, worker, together, at.workspace));
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    if (error != NO_ERROR) atomicMax(at.desk + FAILED, error);
    Word arrived = error != NO_ERROR ? ONE_FAILED + 1 : 1;
    if (together > 1) arrived += add_in_order(at.desk + ARRIVED, arrived);
    if (together == 1 || arrivals(arrived) == stages * together) at.answer(ticket_of(item), arrived >= ONE_FAILED);
}

/// Block 0's thread 0: one request after another, each announced when the one before it is finished.
__device__ inline void keep_desk(const Word* requests, Word* pulse, Word* desk, int slots) {
    constexpr long long BEAT = 1 << 20;  // cycles
    long long beaten = clock64();
    Word beats = *pulse;
    const auto beat = [&] {
        wait_a_little();
        if (clock64() - beaten < BEAT) return;
        beaten = clock64();
        put(pulse, ++beats);
    };
    Word request = 0;
    for (Word ticket = 1;; ++ticket) {
        while (ticket_of(request) != ticket) {
            request = load_from_host(requests + slot_of(ticket, slots));
            if (ticket_of(request) != ticket) beat();
        }
        store_in_order(desk + ANNOUNCED, request);
        if (number_of(request) == STOP_PROGRAM) return;
        request = load_from_host(requests + slot_of(ticket + 1, slots));  // the next one, while this one is worked on
        while (load_after(desk + FINISHED) != ticket) beat();
    }
}

/// One block for the desk and one or more for the work, all resident: a cooperative launch, of blocks as the kernels have
/// them. `desk` is zero at first and again at the end.
template <int THREADS, auto... KERNELS>
__global__ void __launch_bounds__(THREADS, 1)
    serve_queue(const Word* requests, Word* answers, Word* pulse, Word* desk, const Word* programs, void* workspace,
                int slots, int program_words) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) keep_desk(requests, pulse, desk, slots);
        return;
    }
    __shared__ Word table[MOST_PROGRAM_WORDS], announced;
    for (int i = threadIdx.x; i < program_words; i += blockDim.x) table[i] = programs[i];
    const Workplace at = {answers, desk, static_cast<char*>(workspace), slots};
    Word seen = 0;
    while (true) {
        if (threadIdx.x == 0) {
            while ((announced = load_after(desk + ANNOUNCED)) == seen) wait_a_little();
        }
        __syncthreads();
        seen = announced;
        if (number_of(seen) == STOP_PROGRAM) break;
        work_on<KERNELS...>(at, table, seen);
        __syncthreads();
    }
    if (threadIdx.x > 0 || add_in_order(desk + ARRIVED, 1) + 1 < gridDim.x - 1) return;
    at.answer(ticket_of(seen), false);
    for (int i = 0; i < DESK_WORDS; ++i) put(desk + i, 0);
}
