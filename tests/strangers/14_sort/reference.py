import numpy as np


def bitonic_sort_step(dev_values, j, k):
    values, at = dev_values.copy(), np.arange(len(dev_values))
    pairs = at[(at ^ int(j)) > at]
    others = pairs ^ int(j)
    swap = (values[pairs] > values[others]) == ((pairs & int(k)) == 0)
    values[pairs[swap]], values[others[swap]] = dev_values[others[swap]], dev_values[pairs[swap]]
    return values


def bitonic_sort_shared(keys_in, length):
    return np.concatenate([np.sort(keys_in[start : start + 256]) for start in range(0, int(length), 256)])


def rank_sort(x):
    return np.sort(x)


def radix_count(keys, counts, shift):
    return counts + np.bincount((keys >> np.uint32(shift)) & 15, minlength=16)
