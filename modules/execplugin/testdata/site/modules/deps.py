"""Functions that need something."""
import salt.utils.decorators
import salt.utils.decorators.path

HAVE = False


def fallback():
    return "fallback of " + __opts__["id"]


@salt.utils.decorators.depends("HAVE", fallback_function=fallback)
def with_fallback():
    return "never " + __grains__["id"]


@salt.utils.decorators.depends("HAVE")
def gone():
    return "never"


@salt.utils.decorators.path.which("no-such-program")
def needs_program():
    return __salt__["test.ping"]()


@salt.utils.decorators.memoize
def remembered(n):
    return n + __pillar__["shop"].get("factor", 0)
