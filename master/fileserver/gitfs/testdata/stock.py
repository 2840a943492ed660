"""Answers, as JSON, what stock's file server makes of configurations: a list of {opts, envs, files} on standard input. The back end is
gitfs unless opts have another."""

import json
import logging
import os
import sys

import salt.config
import salt.fileserver
import salt.utils.gitfs

logging.disable(logging.CRITICAL)


def one(case):
    salt.utils.gitfs.GitFS.instance_map.clear()  # of the case before
    opts = salt.config.master_config(None)
    opts["fileserver_backend"] = ["gitfs"]
    opts.update(case["opts"])
    opts["__role"] = "master"
    os.makedirs(opts["cachedir"], exist_ok=True)
    server = salt.fileserver.Fileserver(opts)
    server.update()
    out = {"envs": sorted(server.envs()), "list": {}, "read": {}}
    for env in case["envs"]:
        load = {"saltenv": env}
        try:
            links = server.symlink_list(dict(load))
            out["list"][env] = [
                sorted(server.file_list(dict(load))),
                sorted(server.dir_list(dict(load))),
                dict(links),
                sorted(server.file_list_emptydirs(dict(load))),
            ]
        except ValueError:  # GitPython's, of a number that is no commit
            out["list"][env] = "raises"
        for name in case["files"]:
            try:
                found = server.find_file(name, env)
            except ValueError:
                out["read"][env + " " + name] = "raises"
                continue
            text = None
            if found.get("path"):
                with open(found["path"], encoding="utf-8") as file:
                    text = [file.read(), oct(found["stat"][0] & 0o777), found["rel"]]
            out["read"][env + " " + name] = text
    return out


answers = []
for case in json.load(sys.stdin):
    try:
        answers.append(one(case))
    except BaseException as exc:  # SystemExit as well
        answers.append({"error": type(exc).__name__})
json.dump(answers, sys.stdout)
