"""The libzmq side of the interop test: one role per run, driven by lines on standard input."""
import sys, zmq

role, addr = sys.argv[1], sys.argv[2]
ctx = zmq.Context()
out = lambda *a: print(*a, flush=True)

def body(n):
    return (bytes(range(256)) * (n // 256 + 1))[:n]

if role in ("req", "dealer"):
    s = ctx.socket(zmq.REQ if role == "req" else zmq.DEALER)
    s.setsockopt(zmq.HEARTBEAT_IVL, 100)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 30_000)  # a shorter one ends the connection of a loaded machine, and the request on it is lost
    s.connect(addr)
    for n in (0, 1, 255, 256, 600, 100_000, 5_000_000):
        s.send_multipart(([b""] if role == "dealer" else []) + [b"\xdb" + n.to_bytes(4, "big") + body(n)])
        r = s.recv_multipart()
        assert r[:-1] == ([b""] if role == "dealer" else []), r[:-1]
        want = b"echo:\xdb" + n.to_bytes(4, "big") + body(n)
        assert r[-1] == b"\xdb" + len(want).to_bytes(4, "big") + want, (n, len(r[-1]))
        out("ok", n)
    s.poll(1000)  # several heartbeats
    s.send_multipart(([b""] if role == "dealer" else []) + [b"\xa1x"])
    out("after", s.recv_multipart()[-1][5:].decode("latin1"))
elif role == "sub":
    s = ctx.socket(zmq.SUB)
    s.setsockopt(zmq.HEARTBEAT_IVL, 100)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 300)
    for t in sys.argv[3:] or [""]:
        s.setsockopt(zmq.SUBSCRIBE, t.encode())
    s.connect(addr)
    while True:
        m = s.recv_multipart()
        if m[-1].endswith(b"end"):
            break
        out(len(m), len(m[-1]), m[-1][:40].decode("latin1"))
elif role == "router":
    s = ctx.socket(zmq.ROUTER)
    port = s.bind_to_random_port("tcp://127.0.0.1")
    out(port)
    while True:
        m = s.recv_multipart()
        s.send_multipart(m[:-1] + [b"echo:" + m[-1]])
elif role == "pub":
    s = ctx.socket(zmq.XPUB)
    s.setsockopt(zmq.HEARTBEAT_IVL, 100)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 300)
    port = s.bind_to_random_port("tcp://127.0.0.1")
    out(port)
    topics = [s.recv() for _ in range(int(sys.argv[3]))]
    out(" ".join(sorted(t.decode("latin1") for t in topics)).encode("unicode_escape").decode())
    for line in sys.stdin:
        s.send_multipart([p.encode() for p in line.rstrip("\n").split("|")])
