"""OS::Salt::WaitCondition and its handle: signals are events, and a minion can only signal in its own name.

The master stores an event of the tag of a handle with the minion that fired it before that minion is told that it arrived. The condition
reads that record, so neither the end of an engine nor of a master loses a signal.
"""

import json

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties
from heat.engine import resource
from oslo_log import log as logging
from oslo_utils import timeutils

from brine_openstack import master as brine
from brine_openstack.heat import engine
from brine_openstack.heat import minions
from brine_openstack.heat import order_resource

LOG = logging.getLogger(__name__)

# The tags of signals begin with it; the sidecar's keep_events has it.
PREFIX = "heat/signal/"

SUCCESS, FAILURE = "SUCCESS", "FAILURE"


class SaltWaitConditionHandle(resource.Resource):
    """A name under which minions signal. It depends on nothing, so that a server's user data can contain it."""

    ATTRIBUTES = (TAG, SIGNAL, COMMAND) = ("tag", "signal", "command")
    properties_schema = {}
    attributes_schema = {
        TAG: attributes.Schema(_("The tag of the events that signal this handle."), type=attributes.Schema.STRING),
        SIGNAL: attributes.Schema(_("JSON that heat.signal of the guest agent understands."), type=attributes.Schema.STRING),
        COMMAND: attributes.Schema(
            _("A command that signals success; append a JSON object with status, reason, data and id for anything else."),
            type=attributes.Schema.STRING),
    }

    default_client_name = None

    def handle_create(self):
        self.resource_id_set(self.uuid)

    @property
    def tag(self):
        return PREFIX + self.resource_id

    def _resolve_attribute(self, name):
        if self.resource_id is None:
            return None
        if name == self.TAG:
            return self.tag
        if name == self.SIGNAL:
            return json.dumps({"signal_transport": "SALT_SIGNAL", "tag": self.tag})
        return "salt-call event.send " + self.tag


class SaltWaitCondition(resource.Resource):
    """Waits until the named minions have signalled often enough.

    It is complete with count signals of success, and fails with the first signal of failure or when its timeout ends.
    """

    PROPERTIES = (HANDLE, TAG, SERVER, SERVERS, COUNT, TIMEOUT) = ("handle", "tag", "server", "servers", "count", "timeout")
    ATTRIBUTES = (DATA, SIGNALS) = ("data", "signals")

    properties_schema = {
        HANDLE: properties.Schema(
            properties.Schema.STRING, _("The handle whose signals count. Exclusive with tag.")),
        TAG: properties.Schema(
            properties.Schema.STRING, _("What follows heat/signal/ in the tags of the events that count. Exclusive with handle."),
            constraints=[constraints.AllowedPattern(r"[A-Za-z0-9._-]{1,128}")]),
        SERVER: properties.Schema(
            properties.Schema.STRING, _("The only minion or server whose signals count. Exclusive with servers.")),
        SERVERS: properties.Schema(
            properties.Schema.LIST, _("The only minions or servers whose signals count. Exclusive with server."),
            schema=properties.Schema(properties.Schema.STRING),
            constraints=[constraints.Length(min=1, max=1000)]),
        COUNT: properties.Schema(
            properties.Schema.INTEGER, _("How many signals of success are needed."), default=1, update_allowed=True,
            constraints=[constraints.Range(min=1, max=100000)]),
        TIMEOUT: properties.Schema(
            properties.Schema.NUMBER, _("The seconds to wait for them."), required=True, update_allowed=True,
            constraints=[constraints.Range(1, 43200)]),
    }

    attributes_schema = {
        DATA: attributes.Schema(
            _("JSON with the data of the signals by their ids."), type=attributes.Schema.STRING, cache_mode=attributes.Schema.CACHE_NONE),
        SIGNALS: attributes.Schema(
            _("The signals by their ids, each with status, reason, data and minion."), type=attributes.Schema.MAP,
            cache_mode=attributes.Schema.CACHE_NONE),
    }

    default_client_name = None

    def _master(self):
        return engine.client()

    def validate(self):
        super().validate()
        for one, other in ((self.HANDLE, self.TAG), (self.SERVER, self.SERVERS)):
            given = [p for p in (one, other) if self.properties.data.get(p) is not None]
            if len(given) == 2:
                raise exception.ResourcePropertyConflict(one, other)
            if not given:
                raise exception.StackValidationFailed(
                    message=_("Property error: %(name)s: one of %(one)s and %(other)s is required")
                    % {"name": self.name, "one": one, "other": other})

    def _tag(self):
        if self.properties[self.TAG]:
            return PREFIX + self.properties[self.TAG]
        handle = self.stack.resource_by_refid(self.properties[self.HANDLE])
        if handle is not None and not isinstance(handle, SaltWaitConditionHandle):
            raise ValueError(_("%s is not a handle of OS::Salt::WaitConditionHandle") % handle.name)
        return PREFIX + self.properties[self.HANDLE]

    def _minions(self):
        servers = [self.properties[self.SERVER]] if self.properties[self.SERVER] else self.properties[self.SERVERS]
        return [minions.minion_id(self, s) for s in servers]

    def _read(self):
        """Return the signals that the master has, by their ids."""
        master, tag, events = self._master(), self._tag(), []
        for minion in self._minions():
            try:
                events += [(e["time"], minion, e["data"]) for e in master.kept_events(minion, tag)]
            except brine.NotFound:
                pass  # it is not announced yet, or no more
        return read_signals(events)

    def _wait(self, started, timeout):
        try:
            signals = self._read()
        except brine.Unavailable as e:
            LOG.warning("%s: %s", self.name, e)
            signals = {}
        # What has arrived is looked at before the time is, so that a signal in time counts when an engine comes late.
        failed = {k: s for k, s in signals.items() if s["status"] != SUCCESS}
        if failed:
            raise exception.Error(order_resource.clip("; ".join("%s: %s" % (s["minion"], s["reason"]) for s in failed.values()), 4000))
        count = self.properties[self.COUNT]
        if len(signals) >= count:
            self._keep(signals)
            return True
        if timeutils.is_older_than(started, timeout):
            reasons = "; ".join(str(s["reason"]) for s in signals.values())
            raise exception.Error(_("%(n)d of %(count)d received in %(s)g seconds%(why)s")
                                  % {"n": len(signals), "count": count, "s": timeout, "why": " - " + reasons if reasons else ""})
        return False

    def _keep(self, signals):
        text = json.dumps(signals)
        if len(text) > order_resource.MAX_STORED:
            text = json.dumps({k: dict(s, data={"left out": "%d bytes" % len(json.dumps(s["data"]))}) for k, s in signals.items()})
        self.data_set("signals", text[:2 * order_resource.MAX_STORED], redact=True)

    def handle_create(self):
        self.resource_id_set(self.uuid)
        self._tag()
        return timeutils.utcnow(), float(self.properties[self.TIMEOUT])

    def check_create_complete(self, cookie):
        return self._wait(*cookie)

    def handle_update(self, json_snippet, tmpl_diff, prop_diff):
        self.properties = json_snippet.properties(self.properties_schema, self.context)
        return timeutils.utcnow(), float(self.properties[self.TIMEOUT])

    def check_update_complete(self, cookie):
        return self._wait(*cookie)

    def handle_delete(self):
        if self.resource_id is None:
            return
        for minion in self._minions():
            try:
                self._master().forget_events(minion, self._tag())
            except brine.NotFound:
                pass

    def _resolve_attribute(self, name):
        text = self.data().get("signals")
        signals = json.loads(text) if text else self._read() if self.resource_id else {}
        if name == self.SIGNALS:
            return signals
        return json.dumps({k: s["data"] for k, s in signals.items()})


def read_signals(events):
    """Return the signals in events, (time, minion, data) each, by their ids.

    The rules are those of Heat's own handles: a missing status is success, a missing id is a running number, a missing reason says
    which signal it is, and a repeated id takes the place of the one before. What is no signal is a failure.
    """
    signals = {}
    for _when, minion, data in sorted(events, key=lambda e: e[0]):
        number = len(signals) + 1
        if not isinstance(data, dict):
            data = {"status": FAILURE, "reason": "a signal must be a map of status, reason, data and id, not %.200r" % (data,)}
        status, reason = data.get("status", SUCCESS), data.get("reason", "Signal %d received" % number)
        if status not in (SUCCESS, FAILURE):
            status, reason = FAILURE, "a signal's status must be SUCCESS or FAILURE, not %.200r" % (status,)
        signals[str(data.get("id", number))] = {"status": status, "reason": reason, "data": data.get("data"), "minion": minion}
    return signals


def resource_mapping():
    """Return the resource types of this module, for Heat."""
    return {"OS::Salt::WaitCondition": SaltWaitCondition, "OS::Salt::WaitConditionHandle": SaltWaitConditionHandle}
