"""Start the exporter, and print what it answers."""

import re
import subprocess
import sys
import time
import urllib.error
import urllib.request


def answer(address):
    """Return status, type and text of what an address answers, as soon as something listens there."""
    for _ in range(50):
        try:
            with urllib.request.urlopen(address, timeout=20) as response:
                return response.status, response.headers["Content-Type"], response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.reason, ""
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing listens at {address}")


command = ["prism-bench", "monitor", "--serve", "0", "--seconds", "60", *sys.argv[1:]]
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
    address = None
    for line in server.stdout:
        print(re.sub(r"(?<=\d):\d+", ":PORT", line), end="")
        if address := re.search(r"http://[\d.]+:\d+", line):
            break
    for path in ("/metrics", "/", "/nonsense") if address else ():
        status, kind, text = answer(address[0] + path)
        print(path, status, kind)
        lines = [line for line in text.splitlines() if not re.match(r"(# \w+ )?(python|process)_", line)]
        print(*(re.sub(r"(_created|_seconds_sum|timestamp\S*) \S+$", r"\1 #", line) for line in lines), sep="\n")
    server.terminate()
    print("ended with", server.wait(20))
