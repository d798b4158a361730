// Written by `prism-bench fuse` from fused_transfer_entropy.py: change that and run it again.
#include "sums/grid_reduce.cuh"
#include "neighbours/ksg.cuh"
#include "neighbours/te_points.cuh"

// Stages: eps, n_y, n_xz, n_z, total, mean.
template <int dx, int dy, int k, int OWN>
__global__ void __launch_bounds__(TE_THREADS)
    fused_transfer_entropy_generated(const float* x_past, const float* y_past, const float* y_future, float* mean,
                                     double* by_block, unsigned int* arrived, int n) {
    using Points = Cloud<dx, dy, 1>;
    const Points points{x_past, y_past, y_future, n};
    const WarpPoints<Points, OWN> own(points);
    float eps_of[OWN];
    const auto apart = [&](int p, const float(&other)[Points::D]) { return distance<0, dx + dy + 1>(own.at[p], other); };
    find_radii<k>(points, own, apart, eps_of);
    int n_y_of[OWN] = {}, n_xz_of[OWN] = {}, n_z_of[OWN] = {};
    own.visit(points, [&](int p, int, const float(&other)[Points::D]) {
        const bool near_in_y_future_by_eps = distance<dx + dy, dx + dy + 1>(own.at[p], other) < eps_of[p];
        const bool near_in_y_past_by_eps = distance<dx, dx + dy>(own.at[p], other) < eps_of[p];
        const bool near_in_x_past_by_eps = distance<0, dx>(own.at[p], other) < eps_of[p];
        n_y_of[p] += near_in_y_future_by_eps & near_in_y_past_by_eps;
        n_xz_of[p] += near_in_x_past_by_eps & near_in_y_past_by_eps;
        n_z_of[p] += near_in_y_past_by_eps;
    });
#pragma unroll
    for (int p = 0; p < OWN; ++p) {
        n_y_of[p] = __reduce_add_sync(FULL_WARP, n_y_of[p]);
        n_xz_of[p] = __reduce_add_sync(FULL_WARP, n_xz_of[p]);
        n_z_of[p] = __reduce_add_sync(FULL_WARP, n_z_of[p]);
    }
    double part[] = {SumOf::nothing()};
#pragma unroll
    for (int p = 0; p < OWN; ++p) {
        const int point = own.first + p;
        if (threadIdx.x % 32 != p || point >= n) continue;
        const double total_term = digamma_of(k) - digamma_of(n_y_of[p] + double(1.0))
            - digamma_of(n_xz_of[p] + double(1.0)) + digamma_of(n_z_of[p] + double(1.0));
        part[0] = SumOf{}(part[0], SumOf::term(total_term));
    }
    if (!grid_reduce<SumOf>(part, by_block, arrived)) return;
    const double total_all = part[0];
    *mean = static_cast<float>(total_all / n);
}
