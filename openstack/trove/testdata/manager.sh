# Run Trove's manager of a datastore in a mount namespace in which the paths that Trove has in its code are in the directory $1. $2 is the
# datastore; the other arguments are those of manager.py. With DOCKER_SOCKET the namespace is that of a Docker daemon, and has the mounts.
set -eu
here=$(dirname "$0")
dir=$1
shift
[ -n "${DOCKER_SOCKET:-}" ] || sh "$here/mounts.sh" "$dir" "$1" "$3"
exec env HOME="$dir" PYTHONWARNINGS=ignore /usr/bin/python3 "$here/manager.py" "$@"
