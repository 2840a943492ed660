"""OS::Salt::State: an SLS that is part of the template, applied to one minion."""

import json

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties

from brine_openstack import master as brine
from brine_openstack.heat import minions
from brine_openstack.heat import order_resource


class SaltState(order_resource.OrderResource):
    """Applies Salt states to one minion.

    The states come from the template, reach the one minion that they are for, and are gone when they have been applied. The resource
    is complete when all states succeeded.
    """

    PROPERTIES = (SERVER, SLS, PILLAR, TEST, RUN_ON, SLS_DELETE) = ("server", "sls", "pillar", "test", "actions", "sls_delete")
    ATTRIBUTES = (RESULTS, CHANGES, SUCCEEDED, FAILED_STATES, STDOUT) = ("results", "changes", "succeeded", "failed", "stdout")

    _ACTIONS = ("CREATE", "UPDATE", "SUSPEND", "RESUME")

    properties_schema = {
        SERVER: properties.Schema(
            properties.Schema.STRING,
            _("The minion or server that the states are applied to."),
            required=True,
        ),
        SLS: properties.Schema(
            properties.Schema.STRING,
            _("The states, as in a file of Salt's state tree: YAML with Jinja, or another renderer named by its first line."),
            required=True, update_allowed=True,
            constraints=[constraints.Length(min=1, max=1 << 20)],
        ),
        PILLAR: properties.Schema(
            properties.Schema.MAP,
            _("Values that the states read as pillar. They reach this minion only and are kept sealed."),
            default={}, update_allowed=True,
        ),
        TEST: properties.Schema(
            properties.Schema.BOOLEAN,
            _("Whether to report what would change, and to change nothing."),
            default=False, update_allowed=True,
        ),
        RUN_ON: properties.Schema(
            properties.Schema.LIST,
            _("The actions of the stack that apply the states."),
            default=["CREATE", "UPDATE"], update_allowed=True,
            constraints=[constraints.AllowedValues(_ACTIONS)],
        ),
        SLS_DELETE: properties.Schema(
            properties.Schema.STRING,
            _("States to apply when the resource is deleted and its minion is still there."),
            update_allowed=True,
            constraints=[constraints.Length(max=1 << 20)],
        ),
    }

    attributes_schema = {
        RESULTS: attributes.Schema(
            _("Each state's state, name, result, comment, changes and duration, by its id."),
            type=attributes.Schema.MAP),
        CHANGES: attributes.Schema(_("The changes of the states that changed something, by id."), type=attributes.Schema.MAP),
        SUCCEEDED: attributes.Schema(_("The ids of the states that succeeded, in their order."), type=attributes.Schema.LIST),
        FAILED_STATES: attributes.Schema(_("The ids of the states that failed, in their order."), type=attributes.Schema.LIST),
        STDOUT: attributes.Schema(_("A summary with a line for each state."), type=attributes.Schema.STRING),
    }

    def _work(self, props, action):
        if action == self.DELETE:
            sls = props[self.SLS_DELETE]
        else:
            sls = props[self.SLS] if action in props[self.RUN_ON] else None
        if not sls:
            return None
        return {
            "fun": "state.apply", "tgt": minions.minion_id(self, props[self.SERVER]),
            "arg": OrderArgs(), "kwarg": {"test": True} if props[self.TEST] else None,
            "files": {"state.sls": sls}, "pillar": dict(props[self.PILLAR] or {}) or None,
        }

    def _finish(self, outcome, props, action):
        (minion, result), = outcome["minions"].items()
        if result["status"] != brine.RETURNED:
            raise exception.Error("%s: %s" % (minion, brine.describe(result)))
        states = read_states(result.get("return"))
        if states is None:
            raise exception.Error("%s: the states do not compile: %s" % (minion, order_resource.clip(rendering(result.get("return")), 4000)))
        self._store(self.RESULTS, states, _smaller)
        failed = [s for s in states if s["result"] is False]
        if failed:
            raise exception.Error("%s: %d of %d states failed: %s" % (
                minion, len(failed), len(states),
                order_resource.clip("; ".join("%s (%s): %s" % (s["id"], s["state"], s["comment"]) for s in failed), 4000)))
        if not result.get("success") and not props[self.TEST]:
            raise exception.Error("%s: %s" % (minion, brine.describe(result)))

    def _succeeded(self, outcome):
        return all(r["status"] == brine.RETURNED and r.get("success") for r in outcome["minions"].values())

    def _minions_left(self):
        return exists(self, self.properties[self.SERVER])

    def _resolve_attribute(self, name):
        states = self._stored(self.RESULTS)
        if not isinstance(states, list):
            return None
        if name == self.RESULTS:
            return {s["id"]: {k: v for k, v in s.items() if k != "id"} for s in states}
        if name == self.CHANGES:
            return {s["id"]: s["changes"] for s in states if s["changes"]}
        if name == self.SUCCEEDED:
            return [s["id"] for s in states if s["result"] is not False]
        if name == self.FAILED_STATES:
            return [s["id"] for s in states if s["result"] is False]
        return summary(states)


class OrderArgs:
    """The argument of state.apply names the order, whose id is not known before its content is: it stands for it until then."""

    def __call__(self, order):
        return ["_order.%s.state" % order]

    def __repr__(self):
        return "the order's own state"

    def __eq__(self, other):
        return isinstance(other, OrderArgs)


def exists(resource, server):
    """Report whether the minion of a server is still announced."""
    try:
        resource._master().minion(minions.minion_id(resource, server))
    except brine.NotFound:
        return False
    return True


def read_states(value):
    """Return the states of a state run in the order in which they ran, or None if value is not the return of one."""
    if not isinstance(value, dict) or not all(isinstance(v, dict) and "result" in v for v in value.values()):
        return None
    entries = sorted(value.items(), key=lambda item: item[1].get("__run_num__", 0))
    names = {}
    for key, entry in entries:
        names.setdefault(_state_id(key, entry), []).append(key)
    out, seen = [], set()
    for key, entry in entries:
        parts = key.split("_|-")
        kind = "%s.%s" % (parts[0], parts[-1]) if len(parts) == 4 else key
        name = _state_id(key, entry)
        if len(names[name]) > 1:
            name = "%s:%s" % (name, kind)
        if name in seen:
            name = "%s:%s" % (name, entry.get("name"))
        seen.add(name)
        out.append({"id": name, "state": kind, "name": entry.get("name"), "result": entry["result"], "comment": _text(entry.get("comment")),
                    "changes": entry.get("changes") or {}, "duration": entry.get("duration")})
    return out


def _state_id(key, entry):
    parts = key.split("_|-")
    return entry.get("__id__") or (parts[1] if len(parts) == 4 else key)


def _text(comment):
    if isinstance(comment, list):
        return "\n".join(str(c) for c in comment)
    return "" if comment is None else str(comment)


def rendering(value):
    """Return in words why states do not compile: Salt returns a list of texts."""
    if isinstance(value, list):
        return "; ".join(str(v) for v in value)
    return value if isinstance(value, str) else json.dumps(value)


def summary(states):
    """Return one line for each state and a count."""
    word = {True: "ok", False: "FAILED", None: "would change"}
    lines = []
    for s in states:
        said = "changed" if s["result"] and s["changes"] else word.get(s["result"], str(s["result"]))
        lines.append("%s (%s): %s: %s" % (s["id"], s["state"], said, s["comment"]))
    failed = sum(s["result"] is False for s in states)
    lines.append("%d states, %d succeeded, %d failed" % (len(states), len(states) - failed, failed))
    return "\n".join(lines)


def _smaller(states, n):
    """Leave out more and more of large results: long changes first, then long comments."""
    limit = (4000, 1000, 200, 60, 20, 0)[n]
    out = []
    for s in states:
        changes = s["changes"]
        if len(json.dumps(changes)) > limit:
            changes = {"left out": "%d bytes" % len(json.dumps(s["changes"]))} if limit else {}
        out.append(dict(s, changes=changes, comment=order_resource.clip(s["comment"], max(limit, 40))))
    return out


def resource_mapping():
    """Return the resource types of this module, for Heat."""
    return {"OS::Salt::State": SaltState}
