"""How each group of a software config becomes a function of a minion."""

import json
import math
import re

from brine_openstack.heat import script


class GroupError(ValueError):
    """A configuration that no function runs. The text has the cause in words."""


# The master ends an order at its deadline. So many seconds later a minion that has no master any more ends it by itself; were it
# earlier, Heat would be told of a configuration that failed, not of one that timed out.
BACKSTOP = 2

# The hooks of heat-config that a guest may have under these names. heat.hook runs them, and any other hook that it finds.
_HOOK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")


def component(config, action):
    """Return the config of a component that an action runs: one with the tool as its group."""
    for part in config["config"]["configs"]:
        if action in part["actions"]:
            return dict(config, group=part.get("tool") or "script", config=part.get("config"))
    raise GroupError("the component has no configuration for the action %s" % action)


def inputs(config):
    """Return the inputs of a derived config as a map."""
    return {i["name"]: i.get("value") if "value" in i else i.get("default") for i in config.get("inputs") or []}


def _variables(config):
    """Return the inputs for an environment. An input of the type String is a text whatever its value is, as in heat-config."""
    values = inputs(config)
    for i in config.get("inputs") or []:
        if i.get("type") == "String" and "value" in i and not isinstance(i["value"], str):
            values[i["name"]] = str(i["value"])
    return values


def order(config, name, mark, left):
    """Return the fields of the order name that runs a derived config: fun, arg, kwarg, files and pillar.

    left is in how many seconds the order's deadline is. Raises GroupError.
    """
    group, body = config.get("group"), config.get("config")
    if group == "component":
        config = component(config, inputs(config).get("deploy_action"))
        group, body = config["group"], config["config"]
    try:
        if group == "script":
            return _script(config, body, name, mark, left)
    except script.ScriptError as e:
        raise GroupError(str(e)) from e
    if group == "salt":
        return _salt(config, body, name)
    if not group or not _HOOK.match(group):
        raise GroupError("there is no function for the group %r: give the config one of script, salt, cfn-init, or a hook's name" % group)
    return _hook(config, group, body, name, left)


def _hook(config, group, body, name, left):
    kwarg = {"group": group, "inputs": config.get("inputs") or [], "outputs": config.get("outputs") or [],
             "options": config.get("options") or {}, "name": config.get("name") or "", "id": config.get("id") or name,
             "creation_time": config.get("creation_time") or "", "timeout": left + BACKSTOP}
    if not isinstance(body, str):
        return {"fun": "heat.hook", "kwarg": dict(kwarg, config=body)}
    return {"fun": "heat.hook", "kwarg": dict(kwarg, source="salt://_order/%s/config" % name), "files": {"config": body}}


def _script(config, body, name, mark, left):
    if not isinstance(body, str):
        raise GroupError("the configuration of the group script must be a text")
    names = [o["name"] for o in config.get("outputs") or []]
    text = script.wrap(body, _variables(config), names, mark)
    return {"fun": "cmd.script", "arg": ["salt://_order/%s/script" % name],
            "kwarg": {"timeout": math.ceil(left) + BACKSTOP, "live_output": True, "output_limit": script.output_limit(len(names))},
            "files": {"script": text}}


def _salt(config, body, name):
    if not isinstance(body, str):
        body = "#!yaml\n" + json.dumps(body, indent=1)
    return {"fun": "state.apply", "arg": ["_order.%s.config" % name], "kwarg": {"queue": True},
            "files": {"config.sls": body}, "pillar": {"heat": inputs(config)}}
