"""What stock Salt lets people do: standard input is JSON with configurations (external_auth of one system), people, lists of rules and
calls; standard output the rules of each person, and two answers for each list and call: as Salt gives it, and as it would be if patterns
had to match the whole text. The argument is a master's configuration, whose minions these are.

Rules of people are given as Salt's manual has it, where keys are patterns for names. Salt's code has the two the wrong way round
(fill_auth_list calls expr_match with the key as the text and the name as the pattern)."""

import fnmatch
import json
import logging
import re
import sys
import types

import salt.config
import salt.utils.minions
import salt.utils.stringutils

conf = sys.argv[1]
logging.disable()
ask = json.load(sys.stdin)
opts = salt.config.master_config(conf)
ck = salt.utils.minions.CkMinions(opts)

whole = types.SimpleNamespace(**{k: getattr(re, k) for k in dir(re) if not k.startswith("__")})
whole.match = re.fullmatch


def concerns(key, name):
    if fnmatch.fnmatch(name, key):
        return True
    try:
        return bool(re.fullmatch(key, name))
    except re.error:
        return False


salt.utils.stringutils.expr_match = concerns


def allowed(rules, call):
    kind = call.get("kind", "local")
    if kind == "local":
        arg = list(call.get("arg", []))
        if call.get("kwarg"):
            arg.append(dict(call["kwarg"], __kwarg__=True))
        return bool(ck.auth_check(rules, call["fun"], arg, call["tgt"], call.get("tgt_type", "glob")))
    check = ck.runner_check if kind == "runner" else ck.wheel_check
    try:
        return check(rules, call["fun"], {"arg": call.get("arg", []), "kwarg": call.get("kwarg", {})}) is True
    except IndexError:  # a rule without a character
        return False


def table():
    return [[allowed(rules, call) for call in ask["calls"]] for rules in ask["rules"]]


filled = [
    [ck.fill_auth_list(config, name, groups, permissive=permissive) for name, groups in ask["people"]]
    for config in ask["configs"]
    for permissive in (False, True)
]
plain = table()
salt.utils.minions.re = whole
json.dump({"filled": filled, "plain": plain, "whole": table()}, sys.stdout)
