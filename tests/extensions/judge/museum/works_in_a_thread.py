import threading
import time


def attack(device, a, b):
    out = [0.0] * len(a)

    def later():
        while device.timing:
            time.sleep(0.001)
        out[:] = device.add(a, b)

    threading.Thread(target=later).start()
    return out
