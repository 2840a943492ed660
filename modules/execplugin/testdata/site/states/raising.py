"""States that raise."""
from salt.exceptions import CommandExecutionError, SaltInvocationError


def execution(name):
    raise CommandExecutionError("no {} on {} in {}".format(name, __opts__["id"], __env__))


def value(name):
    return {"name": name, "result": __grains__["no such grain"], "changes": {}, "comment": ""}


def usage(name, needed):
    raise SaltInvocationError("{} {}".format(needed, __salt__["test.echo"]("x")))


def unknown(name):
    return __states__["no.such"](name=name)
