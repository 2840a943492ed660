#!/bin/sh
# Installs the newest sahara of the Python package index into a virtual environment of the user's cache, once, and prints the path of its
# Python. For the tests that compare brine's remote driver with Sahara's own:
#
#   $(sh sahara_tests/fetch-sahara.sh) -m unittest discover -t . -s sahara_tests
#
# Debian's Sahara 16 needs no script: its package is python3-sahara.
set -e
dir=${XDG_CACHE_HOME:-$HOME/.cache}/brine/openstack/sahara-19
if [ ! -x "$dir/bin/python" ]; then
    mkdir -p "${dir%/*}"
    part=$dir.$$
    trap 'rm -rf "$part"' EXIT
    ${PYTHON:-python3} -m venv "$part" >&2
    "$part/bin/python" -m pip install --quiet 'sahara>=19,<20' >&2
    mv -T "$part" "$dir"
fi
echo "$dir/bin/python"
