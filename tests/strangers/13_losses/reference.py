import numpy as np


def encoder_forward(inp, wte, wpe, B, T, C):
    return wte.reshape(-1, C)[inp.reshape(B, T)] + wpe.reshape(T, C)


def embedding_backward(dwte, dout, inp, N, C):
    dwte = dwte.reshape(-1, C).copy()
    np.add.at(dwte, inp.ravel(), dout.reshape(N, C))
    return dwte


def crossentropy_forward(probs, targets, B, T, V):
    return -np.log(probs.reshape(B * T, V)[np.arange(B * T), targets.ravel()])


def crossentropy_softmax_backward(dlogits, dlosses, probs, targets, N, V):
    gradient = probs.reshape(N, V).copy()
    gradient[np.arange(N), targets.ravel()] -= 1
    return dlogits.reshape(N, V) + gradient * dlosses.reshape(N, 1)


def adamw_kernel(params, grads, m_memory, v_memory, learning_rate, beta1, beta2, eps, weight_decay):
    m = beta1 * m_memory + (1 - beta1) * grads
    v = beta2 * v_memory + (1 - beta2) * grads**2
    return params - learning_rate * (m / (np.sqrt(v) + eps) + weight_decay * params), m, v
