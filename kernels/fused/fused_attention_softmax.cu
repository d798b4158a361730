#include "attention/attention_streamed.cuh"
#include "attention/attention_thirds.cuh"

extern __shared__ __align__(128) unsigned char stages[];

/// q, k, v and o are [batch, heads, length, width].
__device__ inline Heads heads_apart(int heads, int length, int width) {
    const long long head = static_cast<long long>(length) * width;
    return {heads, length, width, width, head, head * heads};
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
fused_attention_softmax(const typename T::Element::Memory* q, const typename T::Element::Memory* k,
                        const typename T::Element::Memory* v, const float* mask, typename T::Element::Out* o, int heads,
                        int length, int width, float scale) {
    attend_as<T>(q, k, v, mask, o, heads_apart(heads, length, width), scale, stages);
}

/// The same of heads that tensor maps bring.
template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
fused_attention_softmax_streamed(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                                 const __grid_constant__ TensorMap v, const float*, typename T::Element::Out* o,
                                 int heads, int length, int width, float scale) {
    attend_streamed<T>(q, k, v, o, heads_apart(heads, length, width), scale, stages);
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
fused_attention_softmax_fp32(const float* q, const float* k, const float* v, const float* mask, float* o, int heads,
                             int length, int width, float scale) {
    attend_floats_as<T>(q, k, v, mask, o, heads_apart(heads, length, width), scale, stages);
}
