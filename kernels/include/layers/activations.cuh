#pragma once

// Activations as functors. NaN passes through all of them.

/// max(x, 0) that keeps NaN, which the hardware's maximum would drop; -0 gives +0.
struct Relu {
    __device__ float operator()(float x) const { return x <= 0.0f ? 0.0f : x; }
};

struct Identity {
    __device__ float operator()(float x) const { return x; }
};

/// 1 / (1 + exp(-x)) below zero and its complement above, for size = |x|: t / (1 + t) or 1 / (1 + t) with t = exp(-size).
/// The exponential never overflows, and the tail keeps its relative accuracy. The quotient is that of the hardware's
/// reciprocal and one correction: no branch for the exponents that a denominator from 1 to 2 cannot have.
struct Logistic {
    float t, whole, reciprocal;

    __device__ explicit Logistic(float size)
        : t(expf(-size)), whole(1.0f + t), reciprocal(__fdividef(1.0f, whole)) {}
    __device__ float over_whole(float part) const {
        const float quotient = part * reciprocal;
        return fmaf(fmaf(-whole, quotient, part), reciprocal, quotient);
    }
    __device__ float tail() const { return over_whole(t); }
};

/// 1 / (1 + exp(-x)).
struct Sigmoid {
    __device__ float operator()(float x) const {
        const Logistic logistic(fabsf(x));
        return logistic.over_whole(x < 0.0f ? logistic.t : 1.0f);
    }
};

struct Tanh {
    __device__ float operator()(float x) const { return tanhf(x); }
};

// |x|, at most 20, where the tails below are 0 or negligible; NaN stays NaN.
__device__ inline float clipped(float x) { return fabsf(x) > 20.0f ? 20.0f : fabsf(x); }

// x times the probability of staying below x, from `tail`, the probability of exceeding |x|: that keeps the relative
// accuracy on the negative side, and -inf gives -0.
__device__ inline float gate(float x, float tail) {
    const float lost = clipped(x) * tail;
    return x > 0.0f ? x - lost : copysignf(lost, x);
}

// The probability that a normal variable exceeds s, 0 <= s <= 20: exp(-s^2 / 2) / (s + 3) times a polynomial in
// (s - 3) / (s + 3), a weighted minimax fit of erfcx with relative error 2e-8 before rounding. It takes half the
// instructions of erfcf, which would keep a memory-bound kernel from the memory's rate.
__device__ inline float upper_tail(float s) {
    const float r = __fdividef(1.0f, s + 3.0f);
    const float u = (s - 3.0f) * r;
    float p = -2.945531450677663e-4f;
    p = fmaf(p, u, -9.446349577046931e-4f);
    p = fmaf(p, u, 1.084897667169571e-3f);
    p = fmaf(p, u, 6.954221986234188e-3f);
    p = fmaf(p, u, -1.0477311909198761e-2f);
    p = fmaf(p, u, -4.7262221574783325e-2f);
    p = fmaf(p, u, 2.3001867532730103e-1f);
    p = fmaf(p, u, -5.09332001209259e-1f);
    p = fmaf(p, u, 7.290836572647095e-1f);
    return p * r * exp2f(s * s * -0.72134752f);
}

struct Gelu {
    __device__ float operator()(float x) const { return gate(x, upper_tail(clipped(x))); }
};

// The tanh form: (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
__device__ inline float twice_u(float size) { return size * fmaf(0.07135481627f, size * size, 1.59576912161f); }

struct GeluTanh {
    __device__ float operator()(float x) const { return gate(x, Logistic(twice_u(fabsf(x))).tail()); }
};
