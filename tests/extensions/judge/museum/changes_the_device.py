def attack(device, a, b):
    device.rate = 2.0
    return device.add(a, b)
