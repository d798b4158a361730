// The index of one of the largest x of each row: of the first one, or of whichever comes first.
#define EACH_ELEMENT for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < cols; i += gridDim.x * blockDim.x)

extern "C" __global__ void packed(const float* x, unsigned long long* best, int cols) {
    const float* row = x + (long long)blockIdx.y * cols;
    EACH_ELEMENT atomicMax(best + blockIdx.y, (unsigned long long)(unsigned(row[i])) << 32 | (0xffffffffu - i));
}

extern "C" __global__ void unpacked(const unsigned long long* best, int* y) {
    y[blockIdx.x] = int(0xffffffffu - unsigned(best[blockIdx.x]));
}

extern "C" __global__ void largest(const float* x, unsigned* most, int cols) {
    const float* row = x + (long long)blockIdx.y * cols;
    EACH_ELEMENT atomicMax(most + blockIdx.y, unsigned(row[i]));
}

extern "C" __global__ void first_come(const float* x, const unsigned* most, unsigned* place, int cols) {
    const float* row = x + (long long)blockIdx.y * cols;
    EACH_ELEMENT if (unsigned(row[i]) == most[blockIdx.y]) atomicCAS(place + blockIdx.y, 0u, i + 1u);
}

extern "C" __global__ void placed(const unsigned* place, int* y) { y[blockIdx.x] = int(place[blockIdx.x]) - 1; }
