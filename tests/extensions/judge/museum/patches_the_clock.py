import __main__


def attack(device, a, b):
    __main__.Event.elapsed = lambda *_: 0.0
    return device.add(a, b)
