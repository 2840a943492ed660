"""Sections are states."""
import configparser
from collections import OrderedDict


def __virtual__():
    return "ini_states"


def render(template, saltenv="base", sls="", **kwargs):
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.read_string(template.read() if hasattr(template, "read") else template)
    out = OrderedDict()
    for section in parser.sections():
        items = OrderedDict(parser.items(section))
        fun = items.pop("fun")
        out[section] = {fun: [{k: v} for k, v in items.items()] + [{"comment": __pillar__["shop"]["place"]}] if fun.startswith("test.") else []}
    return out
