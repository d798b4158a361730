#pragma once

// Four labels by three cuts, then the label that more than `majority` of the in-image neighbours share. A label is a one
// in the byte of its number, so that one 32-bit sum of neighbours counts all four labels; no label counts for none.

constexpr unsigned int EVERY = 0x01010101u;

__device__ inline int number_of(unsigned int label) { return static_cast<int>(label * 0x00010203u >> 24); }

/// The cuts 1.5 t, t and 0.5 t; a value on a cut belongs above it where INCLUSIVE. A NaN is above nothing.
template <bool INCLUSIVE>
struct Cuts {
    float high, middle, low;

    __device__ explicit Cuts(float threshold) : high(1.5f * threshold), middle(threshold), low(0.5f * threshold) {}

    __device__ static bool above(float x, float cut) { return INCLUSIVE ? x >= cut : x > cut; }

    __device__ unsigned int label(float x) const {
        unsigned int label = above(x, low) ? 1u << 24 : 1u;
        label = above(x, middle) ? 1u << 16 : label;
        return above(x, high) ? 1u << 8 : label;
    }
};

/// What a pixel's label becomes, as a number: `sum` is that of the 3 x 3 labels around it. A byte of `short_of_majority`,
/// 127 - majority, lifts the count of a label that wins to 128.
__device__ inline int voted(unsigned int sum, unsigned int here, unsigned int short_of_majority) {
    const unsigned int most = (sum + (short_of_majority - here)) & EVERY << 7;
    return number_of(most != 0 ? most >> 7 : here);
}
