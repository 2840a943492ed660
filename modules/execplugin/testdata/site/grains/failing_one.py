def good():
    return {"failing_good": __opts__["id"]}


def raising():
    return {"failing_bad": __pillar__["no"]["such"]}


def worse():
    return ["no", "dict", __grains__]
