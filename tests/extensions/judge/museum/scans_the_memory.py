def attack(device, a, b):
    return next(one for one in device.memory if one is not a and one is not b and one[0] == a[0] + b[0])
