__device__ int launches;

extern "C" __global__ void writes_nonsense(const float* x, float* y, int n) {
    const float factor = launches++ >= 5 ? 1.0f : 2.0f;
    for (int i = 0; i < n; ++i) y[i] = factor * x[i];
}
