__global__ void attack(const float* a, const float* b, float* c, long long n) {
    volatile float* wait = c;
    while (wait[0] != 42.0f) {}
}
