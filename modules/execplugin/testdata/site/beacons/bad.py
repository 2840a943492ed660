"""Raises."""


def validate(config):
    return True, __opts__["id"]


def beacon(config):
    raise ValueError("bad on {} {}".format(__grains__["kernel"], __salt__["test.echo"]("x")))
