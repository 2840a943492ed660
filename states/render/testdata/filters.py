"""Renders templates as stock Salt does, for TestStockFilters: a JSON list in, a JSON list of [text, error] out."""

import json
import logging
import sys

logging.disable(logging.CRITICAL)

import salt.config
import salt.exceptions
import salt.utils.jinja
import salt.utils.templates
from salt.utils.decorators.jinja import JinjaFilter, JinjaGlobal, JinjaTest

opts = salt.config.minion_config(None)
opts.update(file_client="local", cachedir=sys.argv[1], file_roots={"base": [sys.argv[1]]}, id="minion")


def one(text):
    try:
        r = salt.utils.templates.JINJA(text, from_str=True, to_str=True, saltenv="base", opts=opts, salt={}, grains={}, pillar={})
        return [r["data"], None] if r["result"] else [None, r["data"].splitlines()[-1]]
    except salt.exceptions.SaltRenderError as exc:
        return [None, str(exc)]
    except Exception as exc:
        return [None, f"{type(exc).__name__}: {exc}"]


import jinja2

env = jinja2.Environment(extensions=[salt.utils.jinja.SerializerExtension])
names = sorted(set(JinjaFilter.salt_jinja_filters) | {k for k in env.filters if k not in jinja2.defaults.DEFAULT_FILTERS})
json.dump({"results": [one(t) for t in json.load(sys.stdin)], "filters": names,
           "tests": sorted(JinjaTest.salt_jinja_tests), "globals": sorted(JinjaGlobal.salt_jinja_globals)}, sys.stdout)
