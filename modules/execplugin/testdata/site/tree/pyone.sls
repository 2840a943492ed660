#!py


def run():
    """Make states of the pillar."""
    high = {"include": ["rendered"]}
    for n, name in enumerate(__pillar__["shop"]["ordered"]):
        high[name] = {"test.show_notification": [{"text": "{} {} {} {}".format(n, __grains__["kernel"], __opts__["id"], __env__)}, {"order": n + 1}]}
    high["shop"] = {"test.show_notification": [{"text": str(__salt__["shop.list"](2)) + __sls__}]}
    return high
