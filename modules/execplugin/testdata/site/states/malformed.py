"""Answers that are wrong in some way."""


def nothing(name):
    return None if __opts__["test"] else {"name": name, "result": True, "changes": {}, "comment": __grains__["kernel"]}


def no_comment(name):
    return {"name": name, "result": True, "changes": {}}


def changes_list(name):
    return {"name": name, "result": True, "changes": [], "comment": __opts__["id"]}


def comment_list(name):
    return {"name": name, "result": 1, "changes": {"a": 1}, "comment": ["one", __salt__["test.echo"]("two")]}


def warned(name):
    return {"name": name, "result": True, "changes": {}, "comment": "c " + __env__, "warnings": ["careful"]}
