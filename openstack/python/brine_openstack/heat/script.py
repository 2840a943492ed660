"""The script that runs a configuration of the group script on a minion, and the reading of what it returned.

A configuration is an executable file, as for heat-config's hook script: its first line may name any interpreter, its inputs are in its
environment, and it writes an output by writing the file $heat_outputs_path.<name>. The script around it is POSIX shell and needs
nothing of Heat on the minion, so that a stock Salt minion runs it too (cmd.script).

The outputs come back behind a marker on standard output. The marker also keeps the white space at the end of both streams, which
Salt cuts off.
"""

import json
import re

# The most that one output may have; more of it is not brought back, and deploy_stderr says so.
MAX_OUTPUT = 256 << 10

# The bytes of each stream that the minion brings back, half of them from the beginning, half from the end: more of both than Heat keeps,
# and the outputs, which are the end in hexadecimal digits. Stock minions bring back everything.
_STREAM = 2 << 20
_MOST = 14 << 20


def output_limit(outputs):
    """Return how many bytes of each stream are brought back from a configuration with so many outputs."""
    return min(_STREAM + 2 * outputs * (2 * MAX_OUTPUT + 1024), _MOST)


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Variables that a shell does not let anyone set.
_READONLY = {"UID", "EUID", "PPID", "GROUPS", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO"}

_SCRIPT = """#!/bin/sh
# Runs the configuration of a Heat deployment and appends its outputs. Generated.
heat_umask=$(umask)
umask 077
heat_dir=
for heat_base in /var/lib/heat-config/brine "${TMPDIR:-/tmp}"; do
    [ "$heat_base" = "${TMPDIR:-/tmp}" ] || mkdir -p "$heat_base" 2>/dev/null || continue
    heat_n=0
    while [ $heat_n -lt 20 ] && [ -z "$heat_dir" ]; do
        if mkdir "$heat_base/heat.$$.$heat_n" 2>/dev/null; then heat_dir=$heat_base/heat.$$.$heat_n; fi
        heat_n=$((heat_n + 1))
    done
    [ -z "$heat_dir" ] || break
done
if [ -z "$heat_dir" ]; then echo "there is no place for the configuration: ${TMPDIR:-/tmp} is not writable" >&2; exit 1; fi
trap 'rm -rf "$heat_dir"' EXIT
trap 'exit 143' TERM INT HUP
printf '%s' @CONFIG@ >"$heat_dir/config" && chmod 700 "$heat_dir/config" || exit 1
(
umask "$heat_umask"
set -- "$heat_dir"
trap - EXIT TERM INT HUP
@EXPORTS@
export heat_outputs_path="$1/out"
exec @ENV@"$1/config"
)
heat_code=$?
printf '\\n%s\\n' @MARK@ >&2
printf '\\n%s\\n' @MARK@
for heat_name in @NAMES@; do
    heat_file=$heat_dir/out.$heat_name
    [ -f "$heat_file" ] || continue
    printf '%s %s ' "$heat_name" "$(($(wc -c <"$heat_file")))"
    dd if="$heat_file" bs=1024 count=@BLOCKS@ 2>/dev/null | od -An -v -tx1 | tr -d ' \\n'
    echo .
done
printf '%s\\n' @MARK@-end
exit $heat_code
"""


class ScriptError(ValueError):
    """A configuration that cannot be run. The text has the cause in words."""


def quote(text):
    """Return a text as one word of a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def variable(value):
    """Return the value of an input as the environment has it: texts as they are, other values as JSON, nothing as an empty text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def wrap(config, inputs, outputs, mark):
    """Return the script that runs config with inputs, a map, and brings back outputs, a list of names, behind mark.

    Raises ScriptError if a name or value cannot be one of a process's environment or of a file.
    """
    if "\0" in config:
        raise ScriptError("the configuration has a NUL character, which no script may have")
    exports, odd = [], []
    for name, value in inputs.items():
        value = variable(value)
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise ScriptError("the input %r cannot be in an environment: its name is empty, or it has '=' or NUL" % name)
        if _IDENTIFIER.match(name) and name not in _READONLY:
            exports.append("export %s=%s" % (name, quote(value)))
        else:
            odd.append(quote("%s=%s" % (name, value)))
    for name in outputs:
        if not name or "/" in name or "\0" in name or any(c.isspace() for c in name):
            raise ScriptError("the output %r cannot be a part of a file's name" % name)
    fields = {
        "@CONFIG@": quote(config), "@EXPORTS@": "\n".join(exports), "@ENV@": "env %s " % " ".join(odd) if odd else "",
        "@MARK@": mark, "@NAMES@": " ".join(quote(n) for n in outputs) or "''", "@BLOCKS@": str(MAX_OUTPUT // 1024),
    }
    # In one pass, so that nothing of a configuration is taken for a field.
    return re.sub("|".join(fields), lambda m: fields[m.group()], _SCRIPT)


def unwrap(stdout, stderr, outputs, mark):
    """Return the standard output and error of a configuration, its outputs by name, and a list of complaints.

    Without the marker, when the script was killed, the streams are what there is, and there are no outputs.
    """
    complaints, found = [], {}
    stderr = _before(stderr, "\n" + mark)[0]
    stdout, tail = _before(stdout, "\n%s\n" % mark)
    for line in (tail or "").splitlines():
        name, _, rest = line.rpartition(" ")
        name, _, size = name.rpartition(" ")
        if name not in outputs or not rest.endswith("."):
            continue
        try:
            value, size = bytes.fromhex(rest[:-1]), int(size)
        except ValueError:
            complaints.append("the output %s was damaged on its way" % name)
            continue
        found[name] = value.decode(errors="replace")
        if len(value) < size:
            complaints.append("the output %s has %d bytes, only the first %d are kept" % (name, size, len(value)))
    return stdout, stderr, found, complaints


def _before(text, mark):
    # The last one counts: a configuration may print what it likes.
    at = text.rfind(mark)
    return (text, None) if at < 0 else (text[:at], text[at + len(mark):])
