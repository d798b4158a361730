#pragma once

// Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw 2011). The same counter and key give the
// same four words on every device and in every order.

struct Random4 {
    unsigned int word[4];

    /// 53 bits of the first two words as a number in [0, 1).
    __device__ double uniform() const {
        const unsigned long long bits = static_cast<unsigned long long>(word[0]) << 32 | word[1];
        return static_cast<double>(bits >> 11) * 0x1p-53;
    }
};

__device__ inline Random4 philox(unsigned long long counter, unsigned long long key) {
    unsigned int c0 = static_cast<unsigned int>(counter), c1 = static_cast<unsigned int>(counter >> 32), c2 = 0, c3 = 0;
    unsigned int k0 = static_cast<unsigned int>(key), k1 = static_cast<unsigned int>(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned int high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        const unsigned int high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}
