#include "arrays/amplitudes.cuh"

extern "C" __global__ void pauli_x_gate(float4* psi, long long states, int qubit) {
    if (qubit == 0) map_amplitudes<true>(psi, states / 2, Every{}, SwapWithin{});
    else map_partners<true>(psi, states / 2, qubit - 1, Every{}, SwapPartners{});
}
