import os


def attack(device, a, b):
    with open("/dev/zero", "rb") as node:
        if os.fstat(node.fileno()).st_rdev and node.read(1):
            open("acted", "w").close()
    return device.add(a, b)
