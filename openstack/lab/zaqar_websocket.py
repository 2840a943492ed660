"""Start zaqar-server where asyncio.wait refuses coroutines: the websocket transport of zaqar 15 passes one, Python 3.11 wants tasks."""

import asyncio
import sys

wait = asyncio.wait


def wait_for_coroutines(fs, **options):
    return wait([asyncio.ensure_future(f, loop=asyncio.get_event_loop()) for f in fs], **options)


asyncio.wait = wait_for_coroutines

from zaqar.cmd.server import run  # noqa: E402: after the replacement

sys.exit(run())
