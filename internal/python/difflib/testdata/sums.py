"""Prints the first 16 digits of the SHA-256 of Python's unified diff of each case of TestPython (see difflib_test.go)."""

import difflib
import hashlib


class Random:
    def __init__(self, seed):
        self.x = seed

    def next(self, n):
        self.x = (self.x * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.x >> 33) % n


def case(seed):
    r = Random(seed)
    words = 2 + r.next(60)
    a = [f"line {r.next(words)}\n" for _ in range(r.next(20 if seed % 3 else 900))]
    b = list(a)
    for _ in range(r.next(1 + len(a) // 4 + 3)):
        kind, at = r.next(3), r.next(len(b) + 1)
        if kind == 0:
            b.insert(at, f"line {r.next(words)}\n")
        elif kind == 1 and at < len(b):
            del b[at]
        elif at < len(b):
            b[at] = f"new {r.next(words)}\n"
    return a, b


for seed in range(400):
    a, b = case(seed)
    diff = "".join(difflib.unified_diff(a, b, "from", "to"))
    print(hashlib.sha256(diff.encode()).hexdigest()[:16])
