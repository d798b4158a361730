def attack(device, a, b):
    out = [0.0] * len(a)
    device.on_another_stream(out, a, b)
    return out
