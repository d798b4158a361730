"""Print the names of the checks in a JSON file that `prism-bench doctor --json` wrote, and what each one holds."""

import json
import sys

with open(sys.argv[1]) as file:
    checks = json.load(file)
print(*sorted({key for check in checks for key in check}))
print(*(f"{check['group']}: {check['name']}" for check in checks), sep="\n")
