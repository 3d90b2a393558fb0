# Forks until it cannot, or 400 times; says how often, and ends what it forked.
import os, signal, sys

children = []
try:
    while len(children) < 400:
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)
except OSError as error:
    print(error, file=sys.stderr)
print("forked", len(children), flush=True)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
sys.exit(1)
