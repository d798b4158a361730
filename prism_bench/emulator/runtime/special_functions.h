// Special functions that neither C nor C++ has: inverses by Newton's method, in double precision.
#pragma once

#include <cmath>

namespace cuda_cpu {

double inverse_erfc(double y);

constexpr double root_pi = 1.77245385090551602730;

// Newton on log(erfc z) = log y, which is nearly straight in the tail. Wants 0 < y <= 0.5.
static double tail_inverse_erfc(double y) {
    const double target = log(y);
    double z = sqrt(fmax(-target - log(1.0 + sqrt(-target)), 0.2));
    for (int i = 0; i < 60; ++i) {
        const double tail = erfc(z);
        const double step = tail * (log(tail) - target) * root_pi / 2 * exp(z * z);
        z += step;
        if (fabs(step) < 1e-16 * z) break;
    }
    return z;
}

double inverse_erf(double x) {
    if (!(fabs(x) <= 1)) return NAN;
    if (fabs(x) > 0.5) return copysign(inverse_erfc(1 - fabs(x)), x);
    double z = x * root_pi / 2;
    for (int i = 0; i < 20; ++i) z -= (erf(z) - x) * root_pi / 2 * exp(z * z);
    return z;
}

double inverse_erfc(double y) {
    if (!(y >= 0 && y <= 2)) return NAN;
    if (y == 0) return INFINITY;
    if (y > 1) return -inverse_erfc(2 - y);
    return y > 0.5 ? inverse_erf(1 - y) : tail_inverse_erfc(y);
}

// exp(x^2) erfc(x); beyond 25 its asymptotic series (DLMF 7.12.1), where exp would overflow.
double scaled_erfc(double x) {
    if (x < 25) return exp(x * x) * erfc(x);
    const double t = 1 / (2 * x * x);
    return (1 - t * (1 - 3 * t * (1 - 5 * t * (1 - 7 * t)))) / (x * root_pi);
}

}  // namespace cuda_cpu

double cyl_bessel_i0(double x) { return std::cyl_bessel_i(0.0, fabs(x)); }
double cyl_bessel_i1(double x) { return copysign(std::cyl_bessel_i(1.0, fabs(x)), x); }
