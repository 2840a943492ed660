"""
Applies state trees with a stock Salt minion without a master. The question is a list of {"root", "sls", "test", "scratch"}; the answer is, for
each, a map of results by tag, or a list of texts that say why nothing was run. A scratch directory is emptied before its tree.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile


def empty(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)


def main():
    import salt.client
    import salt.config

    questions = json.load(sys.stdin)
    answers = []
    with contextlib.redirect_stdout(sys.stderr):
        for q in questions:
            empty(q["scratch"])
            base = tempfile.mkdtemp()  # stock keeps lists of files there
            conf = os.path.join(base, "minion")
            with open(conf, "w") as f:
                json.dump({"id": "host", "root_dir": base, "file_client": "local", "file_roots": {"base": [q["root"]]}, "log_level": "quiet",
                           "features": {"x509_v2": True}, "enable_fqdns_grains": False, "log_level_logfile": "quiet", "pillar_roots": {"base": [base + "/none"]}}, f)
            opts = salt.config.minion_config(conf)
            opts["__cli"] = "salt-call"
            ret = salt.client.Caller(mopts=opts).cmd("state.apply", q["sls"], test=q["test"])
            if isinstance(ret, dict):
                ret = {tag: {"result": r["result"], "comment": str(r["comment"])} for tag, r in ret.items()}
                answers.append({"states": ret})
            else:
                answers.append({"errors": [str(e) for e in ret]})
            shutil.rmtree(base)
    json.dump(answers, sys.stdout)


main()
