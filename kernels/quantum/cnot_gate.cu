#include "arrays/amplitudes.cuh"

// Where the control qubit is 1 the two amplitudes that differ in the target change places; the others are not touched.
// Control and target are bits of an amplitude's index; of a vector's, where neither is 0, they are one less.
extern "C" __global__ void cnot_gate(float4* psi, long long states, int control, int target) {
    if (target == 0) {
        map_amplitudes(psi, states / 4, WhereSet{control - 1}, SwapWithin{});
    } else if (control == 0) {
        map_partners(reinterpret_cast<float2*>(psi), states / 2, target - 1, WhereSet{0}, SwapPartners{});
    } else {
        const int position = target < control ? target - 1 : target - 2;  // of the target, the control's bit left out
        map_partners(psi, states / 4, position, WhereSet{control - 1}, SwapPartners{});
    }
}
