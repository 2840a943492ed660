#!/bin/sh
# Installs the newest openstack-heat of the Python package index into a virtual environment of the user's cache, once, and prints the
# path of its Python. For the tests that compare the resources with Heat's own classes, and for a lab with that Heat:
#
#   $(sh tests/fetch-heat.sh) -m unittest discover -t . -s tests -p 'test_contract.py'
set -e
dir=${XDG_CACHE_HOME:-$HOME/.cache}/brine/openstack/heat-27
if [ ! -x "$dir/bin/python" ]; then
    mkdir -p "${dir%/*}"
    part=$dir.$$
    trap 'rm -rf "$part"' EXIT
    ${PYTHON:-python3} -m venv "$part" >&2
    # What Heat's own test helpers import beside Heat.
    "$part/bin/python" -m pip install --quiet 'openstack-heat>=27,<28' fixtures testtools testscenarios oslotest >&2
    mv -T "$part" "$dir"
fi
# No package of Heat's requires these: the driver of MariaDB, and what pip builds a package with that it finds installed.
"$dir/bin/python" -c 'import pymysql, wheel' 2>/dev/null || "$dir/bin/python" -m pip install --quiet PyMySQL wheel >&2
echo "$dir/bin/python"
