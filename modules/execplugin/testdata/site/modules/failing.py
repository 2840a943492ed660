"""Ways to end badly."""
from salt.exceptions import CommandExecutionError, CommandNotFoundError, SaltInvocationError


def execution():
    raise CommandExecutionError("no: {}".format(__opts__["id"]))


def usage():
    raise SaltInvocationError("bad on {}".format(__grains__["kernel"]))


def command():
    raise CommandNotFoundError("gone")


def code(n=3):
    __context__["retcode"] = n
    return "code {}".format(n)


def caught():
    try:
        __salt__["failing.execution"]()
    except CommandExecutionError as exc:
        return "caught " + str(exc)
