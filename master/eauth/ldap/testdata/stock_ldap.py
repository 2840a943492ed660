"""Stock's answers: argv is the directory with python-ldap; the question is a list of options with log-ins and rules."""
import json
import logging
import sys

sys.path.append(sys.argv[1])
logging.disable(logging.CRITICAL)

import salt.auth.ldap as system

out = []
for case in json.load(sys.stdin):
    opts = {f"auth.ldap.{k}": v for k, v in case["Opts"].items()}
    system.__opts__ = opts
    answers = []
    for name, password in case["Logins"]:
        # As salt/auth/__init__.py: what throws is a log-in that fails, or no groups.
        try:
            ok = bool(system.auth(name, password))
        except Exception:
            ok = False
        groups = []
        if ok:
            try:
                groups = system.groups(name, password=password)
            except Exception:
                groups = []
        answers.append({"OK": ok, "Groups": groups})
    rules = None
    if case["Rules"]:
        # The ids are bytes with today's python-ldap, and match no minion.
        rules = [
            r if isinstance(r, str) else {k if isinstance(k, str) else k.decode(): v for k, v in r.items()}
            for r in system.process_acl(case["Rules"], opts)
        ]
    out.append({"Logins": answers, "Rules": rules})
json.dump(out, sys.stdout)
