"""What a minion returned in the words of Heat: deploy_stdout, deploy_stderr, deploy_status_code and the declared outputs."""

import json
import re

from brine_openstack import master
from brine_openstack.heat import script

STDOUT, STDERR, CODE = "deploy_stdout", "deploy_stderr", "deploy_status_code"

# The most bytes that both streams have as JSON together, as in heat-config. Heat stores them in its database.
MAX_STREAMS = 950000


def size(text):
    """Return how many bytes a text takes as JSON."""
    return len(json.dumps(text)) - 2


def cut(text, limit):
    """Return a text that takes at most limit bytes as JSON: its head and its tail, with how much is missing between them."""
    if size(text) <= limit:
        return text
    note = "\n... %d characters left out ...\n"
    room = max(limit - size(note % len(text)), 0)
    head = _fit(text, room // 2)
    tail = _fit(text[::-1], room - room // 2)[::-1]
    return head + note % (len(text) - len(head) - len(tail)) + tail


def _fit(text, limit):
    """Return the longest start of a text that takes at most limit bytes as JSON."""
    low, high = 0, min(len(text), limit)
    while low < high:
        middle = (low + high + 1) // 2
        if size(text[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def streams(stdout, stderr):
    """Return both streams cut so that they take MAX_STREAMS together. What one does not need the other may use."""
    half = MAX_STREAMS // 2
    out, err = size(stdout), size(stderr)
    if out + err <= MAX_STREAMS:
        return stdout, stderr
    if err <= half:
        return cut(stdout, MAX_STREAMS - err), stderr
    if out <= half:
        return stdout, cut(stderr, MAX_STREAMS - out)
    return cut(stdout, half), cut(stderr, half)


# How cmd.run_all and cmd.script tell that they ended a command, which they do in the place of its output.
TIMED_OUT = re.compile(r" : (Timed out after \S+ seconds)\Z")


def details(result, group, outputs, mark):
    """Return what Heat is signalled for the final result of an order, and the outcome in words.

    outputs are the declared outputs, maps with name and error_output. An output that was not written is left out: for Heat an error
    output that is there at all is an error.
    """
    names = [o["name"] for o in outputs]
    if result.get("status") != master.RETURNED:
        words = master.describe(result)
        return {STDOUT: "", STDERR: words, CODE: 1}, words
    value, code = result.get("return"), result.get("retcode") or 0
    complaints, found = [], {}
    if isinstance(value, dict) and CODE in value:
        out, err, code = value.get(STDOUT) or "", value.get(STDERR) or "", value[CODE]
        found = {n: value[n] for n in names if n in value and n not in (STDOUT, STDERR, CODE)}
    elif isinstance(value, dict) and "retcode" in value and "stdout" in value:
        out, err, code = value["stdout"] or "", value.get("stderr") or "", value["retcode"]
        late = TIMED_OUT.search(_text(out))
        if late and code == 1 and not err:
            err = "stopped: the configuration took longer than its time limit (%s)" % late.group(1)
        if value.get("cache_error"):
            err = "the minion could not fetch the configuration from its master"
        if group == "script":
            out, err, found, complaints = script.unwrap(out, err, names, mark)
    elif group == "salt":
        out, err, code, found = states(value, code, names)
    elif not result.get("success", True) or code:
        out, err, code = "", value if isinstance(value, str) else json.dumps(value), code or 1
    else:
        out, err = value if isinstance(value, str) else json.dumps(value), ""
    for c in complaints:
        err += ("" if not err or err.endswith("\n") else "\n") + c + "\n"
    out, err = streams(_text(out), _text(err))
    answer = {n: cut(v, MAX_STREAMS) if isinstance(v, str) else v for n, v in found.items()}
    answer.update({STDOUT: out, STDERR: err, CODE: code})
    return answer, _words(answer, outputs, group)


def failed(answer, outputs):
    """Report whether Heat takes a signal for a failure."""
    code = answer.get(CODE)
    return bool(code and str(code) != "0") or any(o.get("error_output") and o["name"] in answer for o in outputs)


def _words(answer, outputs, group):
    if not failed(answer, outputs):
        return "returned"
    parts = []
    if str(answer[CODE] or 0) != "0":
        parts.append("%s : Deployment exited with non-zero status code: %s" % (CODE, answer[CODE]))
    for o in outputs:
        if o.get("error_output") and o["name"] in answer:
            parts.append("%s : %s" % (o["name"], answer[o["name"]]))
    # Of a script the last line has the cause, of states the first: the others failed by it.
    lines = [line for line in answer[STDERR].splitlines() if any(c.isalnum() for c in line)]
    if lines:
        parts.append("%s : %s" % (STDERR, lines[0 if group == "salt" else -1].strip()))
    return cut(", ".join(parts), 1000)


def _text(value):
    return value if isinstance(value, str) else json.dumps(value)


def states(value, code, names):
    """Return standard output and error, the code and the outputs of a run of states.

    Standard output has the whole result as JSON, which is YAML. Standard error has a line for each state that failed, or the errors
    of an SLS that does not compile. An output is the value of changes.outputs.<name> of any state, or what the state with the id
    <name> printed.
    """
    if not isinstance(value, dict):
        lines = value if isinstance(value, list) else [value]
        return "", "".join("%s\n" % _text(line) for line in lines), code or 1, {}
    errors, found = [], {}
    for key, state in sorted(value.items(), key=lambda kv: kv[1].get("__run_num__", 0) if isinstance(kv[1], dict) else 0):
        if not isinstance(state, dict):
            errors.append("%s: %s\n" % (key, _text(state)))
            continue
        ident = state.get("__id__") or (key.split("_|-") + [""])[1]
        if state.get("result") is False:
            errors.append("%s (%s): %s\n" % (ident, key.split("_|-")[0], str(state.get("comment", "")).strip()))
        found.update(_state_outputs(ident, state, names))
    if errors and not code:
        code = 2
    return json.dumps(value, indent=1, sort_keys=True) + "\n", "".join(errors), code, found


def _state_outputs(ident, state, names):
    changes = state.get("changes")
    if not isinstance(changes, dict):
        return {}
    found = {}
    if isinstance(changes.get("outputs"), dict):
        found = {n: v for n, v in changes["outputs"].items() if n in names}
    if ident in names and isinstance(changes.get("stdout"), str):
        found[ident] = changes["stdout"]
    return found
