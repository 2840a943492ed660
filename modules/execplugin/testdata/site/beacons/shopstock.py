"""Tell when the stock of a thing changes."""
import logging

log = logging.getLogger(__name__)
__virtualname__ = "shopstock"
LAST = {}


def __virtual__():
    return __virtualname__


def validate(config):
    if not isinstance(config, list):
        return False, "Configuration for shopstock beacon must be a list."
    return True, "Valid beacon configuration"


def beacon(config):
    settings = {}
    list(map(settings.update, config))
    ret = []
    for item in settings.get("items", []):
        have = __salt__["counter.up"]()
        if LAST.get(item) != have:
            ret.append({"tag": item, "item": item, "have": have, "was": LAST.get(item), "id": __opts__["id"], "kernel": __grains__["kernel"]})
        LAST[item] = have
    return ret
