import __main__


def attack(device, a, b):
    try:
        raise RuntimeError("no kernel")
    except RuntimeError:
        return __main__.library_add(a, b)
