"""Data in, data out."""


def render(data, saltenv="base", sls="", **kwargs):
    if not __salt__["test.ping"]():
        return {}
    return {k.replace("DOT", ".") + __opts__["id"]: v for k, v in data.items()}
