"""OS::Salt::Job: one function on one minion or on many."""

import json

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties

from brine_openstack import master as brine
from brine_openstack.heat import minions
from brine_openstack.heat import order_resource
from brine_openstack.heat import state


class SaltJob(order_resource.OrderResource):
    """Runs one function of Salt on some minions of the stack's project.

    The resource is complete when as many minions succeeded as its property success asks for. A minion that is not connected yet is
    waited for, as long as the stack's timeout allows.
    """

    PROPERTIES = (FUNCTION, TARGETS, TARGET, ARGS, KWARGS, SUCCESS, TIMEOUT, IDEMPOTENT, RUN_ON) = (
        "function", "targets", "target", "args", "kwargs", "success", "timeout", "idempotent", "actions")
    ATTRIBUTES = (RESULTS, RETURN_CODES, OUTCOMES, SUCCEEDED, FAILED_MINIONS) = (
        "results", "return_codes", "outcomes", "succeeded", "failed")
    _TARGET_KEYS = (EXPRESSION, KIND) = ("expression", "type")

    _ACTIONS = ("CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME")
    _KINDS = ("glob", "pcre", "grain", "grain_pcre", "compound", "list")

    properties_schema = {
        FUNCTION: properties.Schema(
            properties.Schema.STRING, _("The function, as in cmd.run."), required=True, update_allowed=True,
            constraints=[constraints.AllowedPattern(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*")],
        ),
        TARGETS: properties.Schema(
            properties.Schema.LIST, _("The minions or servers that run the function. Exclusive with target."), update_allowed=True,
            schema=properties.Schema(properties.Schema.STRING),
            constraints=[constraints.Length(min=1, max=10000)],
        ),
        TARGET: properties.Schema(
            properties.Schema.MAP,
            _("An expression for the minions of the stack's project that are meant when the job is placed. Exclusive with targets."),
            update_allowed=True,
            schema={
                EXPRESSION: properties.Schema(
                    properties.Schema.STRING, _("The expression, as in web* or role:db."), required=True,
                    constraints=[constraints.Length(min=1, max=4096)]),
                KIND: properties.Schema(
                    properties.Schema.STRING, _("The kind of the expression."), default="glob",
                    constraints=[constraints.AllowedValues(_KINDS)]),
            },
        ),
        ARGS: properties.Schema(properties.Schema.LIST, _("The function's arguments, in their order."), default=[], update_allowed=True),
        KWARGS: properties.Schema(properties.Schema.MAP, _("The function's arguments that are given by name."), default={}, update_allowed=True),
        SUCCESS: properties.Schema(
            properties.Schema.STRING,
            _("How many minions must succeed: all, any, or a number."),
            default="all", update_allowed=True,
            constraints=[constraints.AllowedPattern(r"all|any|[1-9][0-9]{0,5}")],
        ),
        TIMEOUT: properties.Schema(
            properties.Schema.NUMBER, _("The seconds that the job may take. By default what is left of the stack's timeout."),
            update_allowed=True, constraints=[constraints.Range(min=1, max=604800)],
        ),
        IDEMPOTENT: properties.Schema(
            properties.Schema.BOOLEAN,
            _("Whether running the function a second time does no harm. Then a job whose end is unknown is sent again."),
            default=False, update_allowed=True,
        ),
        RUN_ON: properties.Schema(
            properties.Schema.LIST, _("The actions of the stack that run the function."), default=["CREATE", "UPDATE"], update_allowed=True,
            constraints=[constraints.AllowedValues(_ACTIONS)],
        ),
    }

    attributes_schema = {
        RESULTS: attributes.Schema(_("What the function returned, by minion."), type=attributes.Schema.MAP),
        RETURN_CODES: attributes.Schema(_("The return codes of those that returned, by minion."), type=attributes.Schema.MAP),
        OUTCOMES: attributes.Schema(_("How the job ended, in words, by minion."), type=attributes.Schema.MAP),
        SUCCEEDED: attributes.Schema(_("The minions where the function succeeded."), type=attributes.Schema.LIST),
        FAILED_MINIONS: attributes.Schema(_("The minions where it did not."), type=attributes.Schema.LIST),
    }

    def validate(self):
        super().validate()
        given = [p for p in (self.TARGETS, self.TARGET) if self.properties.data.get(p) is not None]
        if len(given) == 2:
            raise exception.ResourcePropertyConflict(self.TARGETS, self.TARGET)
        if not given:
            raise exception.StackValidationFailed(message=_("Property error: %s: one of targets and target is required") % self.name)

    def _work(self, props, action):
        if action not in props[self.RUN_ON]:
            return None
        work = {"fun": props[self.FUNCTION], "arg": list(props[self.ARGS] or []) or None, "kwarg": dict(props[self.KWARGS] or {}) or None,
                "idempotent": props[self.IDEMPOTENT] or None}
        if props[self.TARGETS]:
            work["tgt"] = sorted({minions.minion_id(self, t) for t in props[self.TARGETS]})
        else:
            work["tgt"] = props[self.TARGET][self.EXPRESSION]
            work["tgt_type"] = props[self.TARGET][self.KIND]
        return work

    def _seconds_left(self):
        left = super()._seconds_left()
        return min(left, self.properties[self.TIMEOUT]) if self.properties[self.TIMEOUT] else left

    def _enough(self, outcome):
        results = outcome["minions"]
        good = sum(r["status"] == brine.RETURNED and bool(r.get("success")) for r in results.values())
        policy = self.properties[self.SUCCESS]
        need = {"all": max(1, len(results)), "any": 1}.get(policy) or int(policy)
        return good, need

    def _succeeded(self, outcome):
        good, need = self._enough(outcome)
        return good >= need

    def _finish(self, outcome, props, action):
        results = outcome["minions"]
        self._store(self.RESULTS, {m: {"return": r.get("return"), "retcode": r.get("retcode"), "words": brine.describe(r),
                                       "good": r["status"] == brine.RETURNED and bool(r.get("success"))}
                                   for m, r in results.items()}, _smaller)
        good, need = self._enough(outcome)
        if good < need:
            bad = ["%s: %s" % (m, brine.describe(r)) for m, r in sorted(results.items()) if not r.get("success")]
            raise exception.Error("%s succeeded on %d of %d minions, %d are needed: %s" % (
                props[self.FUNCTION], good, len(results), need, order_resource.clip("; ".join(bad), 4000) or "no minion is meant"))

    def _minions_left(self):
        targets = self.properties[self.TARGETS]
        return not targets or all(state.exists(self, t) for t in targets)

    def _resolve_attribute(self, name):
        results = self._stored(self.RESULTS)
        if not isinstance(results, dict):
            return None
        if "left out" in results:
            return results if name in (self.RESULTS, self.OUTCOMES) else None
        if name == self.SUCCEEDED:
            return sorted(m for m, r in results.items() if r["good"])
        if name == self.FAILED_MINIONS:
            return sorted(m for m, r in results.items() if not r["good"])
        key = {self.RESULTS: "return", self.RETURN_CODES: "retcode", self.OUTCOMES: "words"}[name]
        return {m: r[key] for m, r in results.items() if name != self.RETURN_CODES or r[key] is not None}


def _smaller(results, n):
    """Leave out more and more of large returns, in the middle of texts first."""
    limit = (8000, 2000, 400, 100, 30, 0)[n]
    out = {}
    for minion, r in results.items():
        value = r["return"]
        if isinstance(value, str):
            value = order_resource.clip(value, max(limit, 40))
        elif len(json.dumps(value)) > limit:
            value = {"left out": "%d bytes" % len(json.dumps(value))}
        out[minion] = dict(r, **{"return": value, "words": order_resource.clip(r["words"], max(limit, 80))})
    return out


def resource_mapping():
    """Return the resource types of this module, for Heat."""
    return {"OS::Salt::Job": SaltJob}
