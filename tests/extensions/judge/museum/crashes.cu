__global__ void attack(const float* a, const float* b, float* c, long long n) {
    *reinterpret_cast<volatile float*>(16) = 1.0f;
}
