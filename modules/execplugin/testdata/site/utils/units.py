"""Sizes with units."""
from salt.exceptions import SaltInvocationError

FACTORS = {"k": 1024, "m": 1024**2, "g": 1024**3}


def to_bytes(text):
    text = str(text).strip().lower()
    if not text[:-1].isdigit() and not text.isdigit():
        raise SaltInvocationError("{}: no size ({} on {})".format(text, __opts__["id"], __grains__["kernel"]))
    factor = FACTORS.get(text[-1:], __pillar__["shop"].get("factor", 1))
    return int(text.rstrip("kmg")) * factor
