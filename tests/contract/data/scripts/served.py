"""Start the exporter, and print what it answers."""

import re
import subprocess
import sys
import urllib.error
import urllib.request

command = ["prism-bench", "exporter", "--port", "0", "--duration", "60", *sys.argv[1:]]
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
    lines = []
    for line in server.stdout:
        lines.append(line)
        if address := re.search(r"http://[\d.]+:\d+", line):
            break
    print(re.sub(r":\d+", ":PORT", "".join(lines)), end="")
    for path in ("/metrics", "/", "/nonsense"):
        try:
            with urllib.request.urlopen(address[0] + path, timeout=20) as answer:
                print(path, answer.status, answer.headers["Content-Type"])
                print(answer.read().decode(), end="")
        except urllib.error.HTTPError as error:
            print(path, error.code, error.reason)
    server.terminate()
    print(server.wait(20))
