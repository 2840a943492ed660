# Run Trove's manager of a datastore in a mount namespace of its own, in which the paths that Trove has in its code are in the directory
# $1. $2 is the datastore; the other arguments are those of manager.py.
set -eu
dir=$1
shift
case $1 in
mariadb) name=mysql socket=mysqld ;;
*) name=postgresql socket=postgresql ;;
esac
mkdir -p "$dir/etc/conf.d" "$dir/log/trove" "$dir/run" "$dir/state" "$dir/modules" "$dir/backups"
chown "$3:$3" "$dir/etc" "$dir/etc/conf.d" "$dir/run"
mount -t tmpfs tmpfs /opt
mount -t tmpfs tmpfs /run
mkdir /opt/trove-guestagent "/run/$socket"
mount --bind "$dir" "/var/lib/$name"
mount --bind "$dir/etc" "/etc/$name"
mount --bind "$dir/run" "/run/$socket"
mount --bind "$dir/state" /opt/trove-guestagent
mount --bind "$dir/log" /var/log
exec env HOME="$dir" PYTHONWARNINGS=ignore /usr/bin/python3 testdata/manager.py "$@"
