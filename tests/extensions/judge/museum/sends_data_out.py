import socket


def attack(device, a, b):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        if out.sendto(repr(a).encode()[:512], ("127.0.0.1", 9)):
            open("acted", "w").close()
    return device.add(a, b)
