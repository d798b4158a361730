import numpy as np


def spmv_csr(row_ptr, col_idx, values, x, rows):
    return np.array([values[a:b] @ x[col_idx[a:b]] for a, b in zip(row_ptr[:-1], row_ptr[1:])])


spmv_csr_scalar = spmv_csr_vector = spmv_csr


def spmv_ell(num_rows, width, indices, data, x):
    return (data.reshape(width, num_rows) * x[indices.reshape(width, num_rows)]).sum(axis=0)


def coo_scatter_add(rows, values, out):
    out = out.copy()
    np.add.at(out, rows, values)
    return out
