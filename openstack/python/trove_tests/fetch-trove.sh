#!/bin/sh
# Installs the newest trove of the Python package index into a virtual environment of the user's cache, once, and prints the path of its
# Python. For the tests that compare brine's guest client with Trove's own:
#
#   $(sh trove_tests/fetch-trove.sh) -m unittest discover -t . -s trove_tests
#
# Debian's Trove 18 needs no script: its package is python3-trove.
set -e
dir=${XDG_CACHE_HOME:-$HOME/.cache}/brine/openstack/trove-26
if [ ! -x "$dir/bin/python" ]; then
    mkdir -p "${dir%/*}"
    part=$dir.$$
    trap 'rm -rf "$part"' EXIT
    ${PYTHON:-python3} -m venv "$part" >&2
    "$part/bin/python" -m pip install --quiet 'trove>=26,<27' >&2
    mv -T "$part" "$dir"
fi
echo "$dir/bin/python"
