import salt.utils.dictdiffer as differ
import salt.utils.versions

__virtualname__ = "compare"


def __virtual__():
    return __virtualname__


def newer(one, two):
    return salt.utils.versions.version_cmp(one, two) > 0


def changed(old, new):
    d = differ.DictDiffer(new, old)
    return {"added": sorted(d.added()), "removed": sorted(d.removed()), "changed": sorted(d.changed()), "id": __opts__["id"],
            "kernel": __grains__["kernel"]}
