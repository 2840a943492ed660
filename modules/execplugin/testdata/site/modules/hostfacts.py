"""Facts for a report."""


def __virtual__():
    return "test.ping" in __salt__


def report(*names, **kwargs):
    extra = {k: v for k, v in kwargs.items() if not k.startswith("__")}
    return {"grains": {n: __grains__.get(n) for n in names}, "echo": __salt__["test.echo"]("x"), "extra": extra, "id": __opts__["id"],
            "fill": __utils__["tmpl.fill"]("$id in $place $mine", mine=1)}


def missing():
    return __salt__["no.such"]()


def argspec(a, b=1, *args, c=3, **kwargs):
    """Every kind of parameter."""
    return [a, b, list(args), c, sorted(k for k in kwargs if not k.startswith("__"))]
