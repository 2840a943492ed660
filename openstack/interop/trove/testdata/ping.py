"""Call a guest over the message broker until it answers, as Trove's services do.

Usage: ping.py TROVE.CONF INSTANCE. Prints "calling" before the call is sent, and "answered".
"""

import sys

from trove import rpc
from trove.common import cfg
from trove.common import context
from trove.db import get_db_api
from trove.guestagent import api

CONF = cfg.CONF
CONF([], project="trove", default_config_files=[sys.argv[1]])
CONF.set_override("agent_call_low_timeout", 240)
rpc.init(CONF)
get_db_api().configure_db(CONF)
guest = api.API(context.TroveContext(is_admin=True), sys.argv[2])
print("calling", flush=True)
assert guest.rpc_ping() is True
print("answered", flush=True)
