// Slow: each thread works on 1,024 elements in a row, so that the threads of a warp never share a line of the cache.
__global__ void naive(const float* a, const float* b, float* c, long long n) {
    const long long first = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * 1024;
    for (long long i = first; i < first + 1024 && i < n; ++i) c[i] = a[i] + b[i];
}

// Fast: each thread works on one vector of four elements, the last ones on single elements.
__global__ void good(const float* a, const float* b, float* c, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (4 * i + 3 < n) {
        const float4 va = reinterpret_cast<const float4*>(a)[i];
        const float4 vb = reinterpret_cast<const float4*>(b)[i];
        reinterpret_cast<float4*>(c)[i] = make_float4(va.x + vb.x, va.y + vb.y, va.z + vb.z, va.w + vb.w);
    } else {
        for (long long j = 4 * i; j < n; ++j) c[j] = a[j] + b[j];
    }
}
