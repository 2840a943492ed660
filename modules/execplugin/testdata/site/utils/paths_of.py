import os

__func_alias__ = {"join_": "join"}


def join_(*parts):
    return os.path.join(__pillar__["shop"]["root"], *parts)


def owner():
    return __grains__["id"], __opts__["file_client"]
