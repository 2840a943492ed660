"""Which order an action of a resource uses, so that the work of a killed engine is found again and nothing runs twice.

    digest   SHA-256 of what is to be done: server, group, configuration, inputs of the user, class of the action
    attempt  0, 1, 2 …: the same work once more
    id       heat-<stack id>-<resource>-<16 hex digits of SHA-256(digest, attempt)>

A resource keeps the record {id, digest, attempt, minion} of its last order in its resource data. When Heat makes a replacement for a
resource whose engine was killed, the replacement finds that record. If it is about the same work, the order is taken over: an
unfinished one is waited for, a finished one is read, and only after a failure the work is placed again as the next attempt. Without
such a record the work is asked for deliberately, and the attempt is the first whose id no order has.
"""

import hashlib
import json

from brine_openstack import master
from brine_openstack.heat import engine

KEY = "brine_order"

# CREATE and UPDATE apply a configuration; a replacement after a killed update is a CREATE for Heat.
APPLY = "APPLY"
CLASSES = {"CREATE": APPLY, "UPDATE": APPLY}

# Inputs that Heat adds are not the user's. Those that are left out here differ between two tries of the same work.
_HEATS = ("deploy_action", "deploy_signal_id", "deploy_signal_verb", "deploy_signal_transport", "deploy_stack_id", "deploy_resource_name",
          "deploy_auth_url", "deploy_username", "deploy_password", "deploy_project_id", "deploy_user_id", "deploy_queue_id",
          "deploy_region_name")

# So many times the same work may be asked for again while the master remembers the earlier ones.
MAX_ATTEMPTS = 10000


def digest(minion, config, inputs, action):
    """Return what identifies the work of a derived config on a minion."""
    users = {k: v for k, v in inputs.items() if k not in _HEATS}
    what = [minion, config.get("group"), config.get("config"), config.get("options"), users, CLASSES.get(action, action)]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def name(stack_id, resource, work, attempt):
    """Return the id of an order."""
    return engine.order_name(stack_id, resource, hashlib.sha256(("%s %d" % (work, attempt)).encode()).hexdigest())


def choose(client, stack_id, resource, work, minion, record, failed):
    """Return the record of the order to use, and the state of that order, or None if it must be placed.

    record is what an action that did not complete left, or None. failed reports whether a final result is a failure for Heat.
    """
    attempt = 0
    if record and record.get("digest") == work:
        attempt = record["attempt"]
        state = find(client, record["id"])
        if state is None:
            return record, None
        result = state["minions"].get(minion) or {}
        if result.get("status") in master.UNFINISHED or not failed(result, record):
            return record, state
        attempt += 1
    while attempt < MAX_ATTEMPTS:
        new = {"id": name(stack_id, resource, work, attempt), "digest": work, "attempt": attempt, "minion": minion}
        if find(client, new["id"]) is None:
            return new, None
        attempt += 1
    raise master.Error("the same work of %s was asked for %d times" % (resource, MAX_ATTEMPTS))


def find(client, order):
    """Return the state of an order, None if the master knows none of this id."""
    try:
        return client.order(order)
    except master.NotFound:
        return None
