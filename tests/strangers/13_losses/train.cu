#include <cuda_runtime.h>
#include <math.h>

template <typename T>
__device__ inline T lerp_(T start, T end, T weight) {
    return fma(weight, end, fma(-weight, start, start));
}

__global__ void encoder_forward(float* out, const int* inp, const float* wte, const float* wpe, int B, int T, int C) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int N = B * T * C;
    if (idx < N) {
        int bt = idx / C;
        int b = bt / T;
        int t = bt % T;
        int c = idx % C;
        int ix = inp[b * T + t];
        out[idx] = wte[ix * C + c] + wpe[t * C + c];
    }
}

__global__ void embedding_backward(float* dwte, const float* dout, const int* inp, int N, int C) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < N * C) atomicAdd(dwte + inp[idx / C] * C + idx % C, dout[idx]);
}

__global__ void crossentropy_forward(float* losses, const float* probs, const int* targets, int B, int T, int V) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < B * T) losses[i] = -logf(probs[i * V + targets[i]]);
}

__global__ void crossentropy_softmax_backward(float* dlogits, const float* dlosses, const float* probs, const int* targets,
                                              int N, int V) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N * V) {
        int row = i / V, v = i % V;
        float indicator = v == targets[row] ? 1.0f : 0.0f;
        dlogits[i] += (probs[i] - indicator) * dlosses[row];
    }
}

__global__ void adamw_kernel(float* params, const float* grads, float* m_memory, float* v_memory, long num_parameters,
                             float learning_rate, float beta1, float beta2, float eps, float weight_decay) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= num_parameters) return;
    float grad = grads[i];
    float m = lerp_(grad, m_memory[i], beta1);
    float v = lerp_(grad * grad, v_memory[i], beta2);
    m_memory[i] = m;
    v_memory[i] = v;
    params[i] -= learning_rate * (m / (sqrtf(v) + eps) + weight_decay * params[i]);
}

#define LAUNCH(kernel, n, ...)                                   \
    do {                                                         \
        const int block_size = 256;                              \
        kernel<<<((n) + block_size - 1) / block_size, block_size>>>(__VA_ARGS__); \
    } while (0)

void train_step(float* out, int* inp, float* wte, float* wpe, float* dwte, float* dout, float* losses, float* probs,
                int* targets, float* dlogits, float* dlosses, float* m, float* v, int B, int T, int C, int V) {
    LAUNCH(encoder_forward, B * T * C, out, inp, wte, wpe, B, T, C);
    int N = B * T;
    LAUNCH(embedding_backward, N * C, dwte, dout, inp, N, C);
    const int block_size = 128;
    const int grid_size = (B * T + block_size - 1) / block_size;
    crossentropy_forward<<<grid_size, block_size>>>(losses, probs, targets, B, T, V);
    LAUNCH(crossentropy_softmax_backward, N * V, dlogits, dlosses, probs, targets, N, V);
    long num_parameters = V * C;
    adamw_kernel<<<(num_parameters + 511) / 512, 512>>>(wte, dwte, m, v, num_parameters, 1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f);
}
