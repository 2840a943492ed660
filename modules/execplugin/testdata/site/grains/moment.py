import salt.utils.platform
from salt.utils.decorators import memoize


def platform():
    return {"moment_linux": salt.utils.platform.is_linux(), "moment_id": __opts__["id"], "moment_pillar": isinstance(__pillar__, dict) or __utils__ is not None}


@memoize
def memo():
    return {"moment_memo": 1}
