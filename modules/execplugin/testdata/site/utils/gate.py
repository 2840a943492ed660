"""Refuses the host: its functions are not there."""


def __virtual__():
    if __opts__["id"] and __grains__.get("no_such_grain") is None and "shop" in __pillar__:
        return False, "no gate here"
    return "gate"


def open_(name):
    return name
