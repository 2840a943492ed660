#!/bin/sh
# Installs the programs that the differential cases run: debian-packages.txt beside this script. Nothing is done when all are
# there; the test fails where this cannot install them.
set -eu
list=$(grep -v '^#' "$(dirname "$0")/debian-packages.txt")
command -v dpkg-query >/dev/null || { echo "install-tools: the differential cases are compared on Debian or Ubuntu" >&2; exit 1; }
missing=
for p in $list; do
	case $(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null || true) in
	ii*) ;;
	*) missing="$missing $p" ;;
	esac
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] || { echo "install-tools: missing packages, and only root can install them:$missing" >&2; exit 1; }
echo "installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 $missing </dev/null >&2; }
install || { apt-get update -qq >&2 && install; } || { echo "install-tools: cannot install$missing" >&2; exit 1; }
