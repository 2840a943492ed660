"""Refuses the host."""


def __virtual__():
    if __grains__["kernel"] == "Linux" and __opts__["id"] and "test.ping" in __salt__:
        return False, "this host is not for us"
    return True


def f():
    return 1
