#pragma once

#include "sums/reduce.cuh"
#include "arrays/vector_load.cuh"

/// One filter's arrays. `controls` is the length of its control vector u, 0 without one; `innovation` and `deviation`
/// receive y and S, if they are there.
struct Filter {
    const float *x, *p, *z, *f, *h, *q, *r, *b, *u;
    float *x_next, *p_next, *likelihood, *innovation, *deviation;
    int* status;
    int n, m, controls;

    __device__ float control(int i) const {
        float sum = 0.0f;
        for (int c = 0; c < controls; ++c) sum = fmaf(b[i * controls + c], u[c], sum);
        return sum;
    }

    /// Element `a` of y and row `a` of S.
    __device__ void keep_innovation(int a, float y, const float* s) const {
        if (innovation == nullptr || a >= m) return;
        innovation[a] = y;
        for (int other = 0; other < m; ++other) deviation[a * m + other] = s[other];
    }
};

/// The arrays of all filters; `each` is 1 where every filter has its own model, 0 where they share it.
struct Filters {
    Filter first;
    int count, each;

    __device__ Filter operator[](long long own) const {
        Filter at = first;
        const long long n = at.n, m = at.m, model = each ? own : 0;
        at.x += own * n, at.p += own * n * n, at.z += own * m, at.u += own * at.controls;
        at.f += model * n * n, at.h += model * m * n, at.q += model * n * n, at.r += model * m * m;
        at.b += model * n * at.controls;
        at.x_next += own * n, at.p_next += own * n * n, at.likelihood += own, at.status += own;
        if (at.innovation != nullptr) at.innovation += own * m, at.deviation += own * m * m;
        return at;
    }
};

__device__ inline float not_known() { return __int_as_float(0x7fc00000); }
