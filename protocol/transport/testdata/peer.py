"""Stock Salt's own transport classes as the other side of the interop test.

    peer.py client TRANSPORT REQUEST_PORT PUBLISH_PORT     requests, presence, then prints what is published
    peer.py server TRANSPORT REQUEST_PORT PUBLISH_PORT     answers requests, publishes lines of standard input
"""
import asyncio
import os
import sys
import tempfile
import threading

import salt.config
import salt.payload
import salt.transport
import salt.transport.base
import salt.transport.frame

try:
    import salt.ext.tornado.gen as gen  # 3006
    import salt.ext.tornado.ioloop as ioloop
except ImportError:
    import tornado.gen as gen
    import tornado.ioloop as ioloop

role, transport = sys.argv[1:3]
out = lambda *a: print(*a, flush=True)


async def client(opts, loop):
    req = salt.transport.request_client(opts, loop)
    for n in (1, 300, 70_000, 3_000_000):
        load = os.urandom(n)
        r = await req.send({"enc": "aes", "load": load, "version": 3}, timeout=20)
        if not isinstance(r, dict):
            r = salt.payload.loads(r, raw=True)
        r = {k.decode() if isinstance(k, bytes) else k: v for k, v in r.items()}
        assert r["load"] == load or r["load"] == load.decode(errors="replace"), n
        out("ok", n)
    try:
        pub = salt.transport.publish_client(opts, loop, host="127.0.0.1", port=int(sys.argv[4]))
    except TypeError:  # 3006
        pub = salt.transport.publish_client(opts, loop)
    await pub.connect(int(sys.argv[4]))
    if transport == "tcp":
        await pub.send(salt.transport.frame.frame_msg({"enc": "aes", "load": b"stock", "version": 3}))
    done = []

    def received(msg):
        if isinstance(msg, list):  # 3006: the frames of ZeroMQ
            msg = msg[-1]
        if not isinstance(msg, dict):
            msg = salt.payload.loads(msg, raw=True)
        load = msg.get("load", msg.get(b"load"))
        if load in ("end", b"end"):
            done.append(1)
        else:
            out("published", len(load))
        return gen.maybe_future(None)

    pub.on_recv(received)
    while not done:
        await gen.sleep(0.02)
    out("end")
    os._exit(0)


async def server(opts, loop):
    async def handle(payload):
        return payload["load"] if isinstance(payload, dict) else payload

    opts["ret_port"] = int(sys.argv[3])
    req = salt.transport.request_server(opts)
    req.pre_fork(None)
    req.post_fork(handle, loop)
    port, pull = int(sys.argv[4]), tempfile.mktemp()
    mod = sys.modules[type(req).__module__]
    pub = mod.PublishServer(opts, pub_host="127.0.0.1", pub_port=port, pull_path=pull)
    present = lambda sub, msg: out("presence", msg["load"])
    task = asyncio.ensure_future(wrap(pub.publisher(None, present, lambda s: None, loop)))
    await asyncio.sleep(1)
    out("listening")
    aio = asyncio.get_event_loop()

    def lines():
        for line in sys.stdin:
            msg = {"enc": "aes", "load": os.urandom(int(line))}
            packed = salt.payload.dumps(msg)
            asyncio.run_coroutine_threadsafe(wrap(pub.publish_payload(packed)), aio)

    threading.Thread(target=lines, daemon=True).start()
    await task
    await asyncio.sleep(60)


async def wrap(x):
    return await x


d = tempfile.mkdtemp()
if role == "client":
    opts = salt.config.DEFAULT_MINION_OPTS.copy()
    uri = "tcp://127.0.0.1:" + sys.argv[3]
    opts.update(master_uri=uri, master_ip="127.0.0.1", master_port=int(sys.argv[3]), __role="minion")
else:
    opts = salt.config.DEFAULT_MASTER_OPTS.copy()
    opts.update(interface="127.0.0.1", __role="master")
opts.update(transport=transport, id="stock", sock_dir=d, cachedir=d, ssl=None)
loop = ioloop.IOLoop()
loop.run_sync(lambda: wrap((client if role == "client" else server)(opts, loop)))
