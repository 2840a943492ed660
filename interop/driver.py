"""Drives a stock Salt master for the interop tests, in one long-lived process.

    driver.py calls CONFIG    reads a JSON request a line from standard input, answers one JSON line
    driver.py events CONFIG   prints "ready", then every event of the master's bus as a JSON line
    driver.py minion CONFIG   the same for a minion's bus; each line of standard input, {"tag", "data"}, is fired there

Python's start costs more than a call, so a test starts each once. Bytes come out as {"__bytes__": base64}.
"""

import base64
import json
import os
import sys
import tempfile
import threading

import salt.client
import salt.config
import salt.key
import salt.runner
import salt.utils.event


def plain(value):
    if isinstance(value, bytes):
        return {"__bytes__": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {k if isinstance(k, str) else repr(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return repr(value)


# Salt prints some messages itself; only answers may go to standard output.
ANSWERS, sys.stdout = sys.stdout, sys.stderr


def answer(value):
    ANSWERS.write(json.dumps(plain(value)) + "\n")
    ANSWERS.flush()


class Calls:
    def __init__(self, path):
        self.opts = salt.config.master_config(path)
        self.path = path

    def client(self):
        return salt.client.LocalClient(c_path=self.path, mopts=self.opts)

    def cmd(self, q):
        with self.client() as local:
            return local.cmd(
                q["tgt"], q["fun"], q.get("arg") or [], timeout=q.get("timeout", 20),
                tgt_type=q.get("tgt_type", "glob"), kwarg=q.get("kwarg"), full_return=True,
                **q.get("extra", {}),
            )

    def pub(self, q):
        with self.client() as local:
            return local.run_job(
                q["tgt"], q["fun"], q.get("arg") or [], tgt_type=q.get("tgt_type", "glob"),
                timeout=q.get("timeout", 20), kwarg=q.get("kwarg"), **q.get("extra", {}),
            )

    def local(self, q):
        with self.client() as local:
            out = getattr(local, q["method"])(*q.get("args", []), **q.get("kwargs", {}))
            return list(out) if hasattr(out, "__next__") else out

    def cached(self, q):
        with self.client() as local:
            return local.get_cache_returns(q["jid"])

    def keys(self, q):
        return salt.key.get_key(self.opts).list_keys()

    def accept(self, q):
        return salt.key.get_key(self.opts).accept(match=q["id"], include_rejected=True, include_denied=True)

    def reject(self, q):
        return salt.key.get_key(self.opts).reject(match=q["id"], include_accepted=True)

    def delete(self, q):
        return salt.key.get_key(self.opts).delete_key(match=q["id"])

    def caller(self, q):
        """A call as salt-call makes it, on a minion whose configuration lies beside the master's."""
        if not hasattr(self, "minion_caller"):
            opts = salt.config.minion_config(self.path.rsplit("/", 1)[0] + "/minion")
            self.minion_caller = salt.client.Caller(mopts=dict(opts, file_client="local"))
        return self.minion_caller.cmd(q["fun"], *q.get("arg", []), **(q.get("kwarg") or {}))

    def salt_call(self, q):
        return self.program(dict(q, program="salt-call"))

    def program(self, q):
        """A program with a command line, in a fork of this process, which saves the time to import Salt."""
        import salt.cli.call  # pylint: disable=import-outside-toplevel
        import salt.scripts  # pylint: disable=import-outside-toplevel
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    os.dup2(out.fileno(), 1)
                    os.dup2(err.fileno(), 2)
                    sys.stdout, sys.argv = open(1, "w", encoding="utf-8", closefd=False), [q["program"]] + q["arg"]
                    if q["program"] == "salt":
                        main = salt.scripts.salt_main
                    else:
                        main = getattr(salt.scripts, q["program"].replace("-", "_"))
                    try:
                        main()
                        code = 0
                    except SystemExit as exc:
                        code = exc.code or 0
                        if not isinstance(code, int):
                            print(code, file=sys.stderr)
                            code = 1
                    sys.stdout.flush()
                    sys.stderr.flush()
                finally:
                    os._exit(code & 0xFF)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            out.seek(0)
            err.seek(0)
            return {"code": code, "out": out.read().decode(), "err": err.read().decode()}

    def netapi(self, q):
        """A request as salt-api and every program with salt.netapi make it."""
        import salt.netapi  # pylint: disable=import-outside-toplevel
        opts = dict(self.opts, netapi_enable_clients=["local", "local_async", "local_batch", "local_subset", "runner", "runner_async",
                                                      "wheel", "wheel_async"])
        out = salt.netapi.NetapiClient(opts).run(q["low"])
        return list(out) if hasattr(out, "__next__") else out

    def token(self, q):
        """A token that a program on the host makes by itself, and whether it finds it again."""
        import salt.auth  # pylint: disable=import-outside-toplevel
        auth = salt.auth.LoadAuth(self.opts)
        made = auth.mk_token(q["load"])
        return {"made": made, "found": auth.get_tok(made.get("token", "none"))}

    def resolved(self, q):
        """A token that the master makes for a program on its host, and what the master says of it."""
        import salt.auth  # pylint: disable=import-outside-toplevel
        resolver = salt.auth.Resolver(self.opts)
        made = resolver.mk_token(q["load"])
        return {"made": made, "found": resolver.get_token(made.get("token", "none"))}

    def wheel(self, q):
        import salt.wheel  # pylint: disable=import-outside-toplevel
        return getattr(salt.wheel.WheelClient(self.opts), q["method"])(q["low"])

    def runner_client(self, q):
        import salt.runner  # pylint: disable=import-outside-toplevel
        return getattr(salt.runner.RunnerClient(self.opts), q["method"])(q["low"])

    def runner(self, q):
        if not hasattr(self, "runners"):
            self.runners = salt.runner.Runner(dict(self.opts, quiet=True, arg=[], fun=""))
        self.runners.opts.update(fun=q["fun"], arg=q["arg"])
        return self.runners.run(full_return=True)

    def run(self):
        answer("ready")
        for line in sys.stdin:
            q = json.loads(line)
            try:
                answer({"ok": getattr(self, q["op"])(q)})
            except BaseException as exc:  # pylint: disable=broad-except
                answer({"error": f"{type(exc).__name__}: {exc}"})


def events(path):
    opts = salt.config.master_config(path)
    with salt.utils.event.get_event("master", sock_dir=opts["sock_dir"], opts=opts, listen=True) as bus:
        if not bus.connect_pub(timeout=30):
            raise SystemExit("cannot connect to the event bus")
        answer("ready")
        while True:
            event = bus.get_event(wait=60, full=True, auto_reconnect=True)
            if event is not None:
                answer(event)


def minion_events(path):
    opts = salt.config.minion_config(path)
    bus = salt.utils.event.MinionEvent(opts, listen=True)
    if not bus.connect_pub(timeout=30):
        raise SystemExit("cannot connect to the event bus")
    answer("ready")

    def fire():
        for line in sys.stdin:
            q = json.loads(line)
            with salt.utils.event.MinionEvent(opts, listen=False) as out:
                out.fire_event(q["data"], q["tag"])

    threading.Thread(target=fire, daemon=True).start()
    while True:
        event = bus.get_event(wait=60, full=True, auto_reconnect=True)
        if event is not None:
            answer(event)


if __name__ == "__main__":
    if sys.argv[1] == "events":
        events(sys.argv[2])
    elif sys.argv[1] == "minion":
        minion_events(sys.argv[2])
    else:
        Calls(sys.argv[2]).run()
