import sys


def attack(device, a, b):
    sys.exit(0)
