"""Values in files, for states."""


def put(name, value):
    return __utils__["store.put"](name, value)


def get(name, default=None):
    return __utils__["store.get"](name, default)


def who():
    return __opts__["id"], __grains__["kernel"]
