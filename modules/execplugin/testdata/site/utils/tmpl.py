"""Fill in templates."""
import string


def fill(text, **values):
    names = {"id": __opts__["id"], "os": __grains__["kernel"], "place": __pillar__["shop"]["place"]}
    names.update(values)
    return string.Template(text).safe_substitute(names)
