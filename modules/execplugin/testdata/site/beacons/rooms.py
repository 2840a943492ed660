"""Rooms that are too warm."""
import salt.utils.beacons


def validate(config):
    config = salt.utils.beacons.list_to_dict(config)
    if "rooms" not in config:
        return False, "rooms are missing on {}".format(__opts__["id"])
    return True, "Valid beacon configuration"


def beacon(config):
    config = salt.utils.beacons.list_to_dict(config)
    return [{"tag": r, "warm": w, "place": __pillar__["shop"]["place"], "kernel": __grains__["kernel"]} for r, w in sorted(config["rooms"].items()) if w > 20]
