#!/bin/sh
# Installs the Debian packages of a list, debian-packages.txt beside this script (the programs that the differential cases run) or
# another one. Nothing is done when all are there, and no service is started; the caller fails where this cannot install them.
#
#   install-tools.sh [LIST]
set -eu
list=$(grep -v '^#' "${1:-$(dirname "$0")/debian-packages.txt}")
command -v dpkg-query >/dev/null || { echo "install-tools: these tests run on Debian or Ubuntu" >&2; exit 1; }
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
# The packages would start their services. A policy that is there already stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	trap 'rm -f "$policy"' EXIT
fi
install() { apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 $missing </dev/null >&2; }
install || { apt-get update -qq >&2 && install; } || { echo "install-tools: cannot install$missing" >&2; exit 1; }
