#include "attention/attention_streamed.cuh"
#include "attention/attention_thirds.cuh"
#include "attention/attention_weights.cuh"

extern __shared__ __align__(128) unsigned char stages[];

/// q, k, v and o are [batch, length, heads width]: the heads are columns of the same rows, read in place.
__device__ inline Heads heads_in_rows(int heads, int length, int width) {
    const long long row = static_cast<long long>(heads) * width;
    return {heads, length, width, row, width, row * length};
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
multi_head_attention(const typename T::Element::Memory* q, const typename T::Element::Memory* k,
                     const typename T::Element::Memory* v, const float* mask, typename T::Element::Out* o, int heads,
                     int length, int width, float scale) {
    attend_as<T>(q, k, v, mask, o, heads_in_rows(heads, length, width), scale, stages);
}

/// The same of heads that tensor maps bring.
template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
multi_head_attention_streamed(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                              const __grid_constant__ TensorMap v, const float*, typename T::Element::Out* o,
                              int heads, int length, int width, float scale) {
    attend_streamed<T>(q, k, v, o, heads_in_rows(heads, length, width), scale, stages);
}

/// Besides, the weights of every query, [batch, heads, length, length].
template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
multi_head_attention_weights(const half* q, const half* k, const half* v, const float* mask, half* o, half* weights,
                             int heads, int length, int width, float scale) {
    attend_with_weights<T>(q, k, v, mask, o, weights, heads_in_rows(heads, length, width), scale,
                           reinterpret_cast<unsigned short*>(stages));
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
multi_head_attention_fp32(const float* q, const float* k, const float* v, const float* mask, float* o, int heads,
                          int length, int width, float scale) {
    attend_floats_as<T>(q, k, v, mask, o, heads_in_rows(heads, length, width), scale, stages);
}
