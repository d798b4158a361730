#include "/etc/passwd"
__global__ void attack(const float* a, const float* b, float* c, long long n) {}
