#pragma once

#include "sums/reduce.cuh"

/// exp(scale (x - max)); 0 for x = -inf even where the maximum is -inf too.
__device__ inline float weight(float x, float max, float scale) {
    return expf(scale * (x - (max == -infinity() ? 0.0f : max)));
}
