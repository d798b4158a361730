"""NumPy references of the kernels in src."""


def _gemm(M, N, K, alpha, A, B, beta, C):
    return alpha * (A.reshape(M, K) @ B.reshape(K, N)) + beta * C.reshape(M, N)


sgemm_naive = sgemm_coalesced = sgemm_shared = sgemm_tile1d = _gemm


def sgemv(M, K, A, x):
    return A.reshape(M, K) @ x
