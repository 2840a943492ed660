"""Call utils by name."""


def call(fun, *args, **kwargs):
    return __utils__[fun](*args, **{k: v for k, v in kwargs.items() if not k.startswith("__pub")})


def has(*funs):
    return {f: f in __utils__ for f in funs}, {f: f in __salt__ for f in funs}, __opts__["id"], __grains__["id"]
