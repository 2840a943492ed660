#!/bin/sh
# The entry point of the replay's images. It does what those do that Trove takes: it starts the server, of which it makes the data if the
# directory is empty, or runs the program for backups, whose store is the directory $STORE.
set -euo pipefail

backup() {
	mode= id= user= password= parent= from= sum=
	for word; do
		value=${word#*=}
		case $word in
		--backup | --nobackup) mode=$word ;;
		--backup-id=*) id=$value ;;
		--db-user=*) user=$value ;;
		--db-password=*) password=$value ;;
		--parent-location=*) parent=${value#file://} ;;
		--restore-from=*) from=${value#file://} ;;
		--restore-checksum=*) sum=$value ;;
		esac
	done
	if [ "$mode" = --nobackup ]; then
		echo "$sum  $from" | md5sum -c >/dev/null
		if [ -x /usr/bin/mariadbd ]; then
			gunzip -c "$from" | mbstream -x -C /var/lib/mysql/data
			mariabackup --prepare --target-dir=/var/lib/mysql/data 2>"$STORE/prepare.log"
		else
			gunzip -c "$from" | tar -x -C /var/lib/postgresql/data/pgdata
		fi
		return
	fi
	file=$STORE/$id.gz
	if [ -x /usr/bin/mariadbd ]; then
		mkdir "$STORE/$id"
		mariabackup --no-defaults --backup --stream=xbstream --datadir=/var/lib/mysql/data --socket=/var/run/mysqld/mysqld.sock \
			--user="$user" --password="$password" --extra-lsndir="$STORE/$id" ${parent:+--incremental-basedir="${parent%.gz}"} \
			2>"$STORE/$id.log" | gzip -c >"$file"
	else
		pg_basebackup -h /var/run/postgresql -U postgres -D - -Ft -X fetch 2>"$STORE/$id.log" | gzip -c >"$file"
	fi
	set -- $(md5sum "$file")
	echo "INFO Backup successfully, checksum: $1, location: file://$file"
}

case ${1:--} in
mysqld_safe) # it only starts the server
	shift
	set -- mariadbd "$@"
	;;
-*)
	server=mariadbd
	[ -x /usr/bin/mariadbd ] || server=postgres
	set -- "$server" "$@"
	;;
esac
case $1 in
/usr/bin/python3)
	shift 2
	backup "$@"
	exit
	;;
mariadbd)
	data=/var/lib/mysql/data
	if [ -n "${MYSQL_ROOT_PASSWORD:-}" ] && [ ! -e $data/mysql ]; then
		mariadb-install-db --no-defaults --skip-test-db --datadir=$data --auth-root-authentication-method=normal >/dev/null
		p=$MYSQL_ROOT_PASSWORD
		printf "USE mysql;\nFLUSH PRIVILEGES;\nALTER USER 'root'@'localhost' IDENTIFIED BY '%s';\nCREATE USER 'root'@'%%' IDENTIFIED BY '%s';\n" \
			"$p" "$p" | mariadbd --no-defaults --bootstrap --datadir=$data 2>/dev/null
	fi
	;;
postgres)
	if [ -n "${PGDATA:-}" ]; then
		[ -e "$PGDATA/PG_VERSION" ] || initdb -D "$PGDATA" -U postgres --encoding=UTF8 --locale=C.UTF-8 --auth=reject >/dev/null
		chmod 700 "$PGDATA"
	fi
	;;
esac
exec "$@"
