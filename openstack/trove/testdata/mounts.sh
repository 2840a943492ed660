# Mount the directories of the instance $1 where Trove's code has their paths. $2 is the datastore, $3 its user. The mount namespace is the
# caller's own.
set -eu
dir=$1
case $2 in
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
