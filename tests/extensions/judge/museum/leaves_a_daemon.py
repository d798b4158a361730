import os
import time


def attack(device, a, b):
    judge = os.getpid()
    if not os.fork():
        os.setsid()
        while os.getppid() == judge:
            time.sleep(0.001)
        open("acted", "w").close()
        os._exit(0)
    return device.add(a, b)
