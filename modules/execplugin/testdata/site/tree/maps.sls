#!pyobjects
TEXT = "text of the map "


class Shop(Map):
    class Debian:
        name = "debian"

    class Linux:
        __grain__ = "kernel"
        name = "linux"

    class Never:
        __grain__ = "no_such_grain"
        name = "never"
