__virtualname__ = "named"


def __virtual__():
    return __virtualname__ if "test.ping" in __salt__ else False


def validate(config):
    return True, __opts__["id"]


def beacon(config):
    return [{"config": [c for c in config if "_beacon_name" not in c], "name": [c["_beacon_name"] for c in config if "_beacon_name" in c], "k": __grains__["kernel"]}]
