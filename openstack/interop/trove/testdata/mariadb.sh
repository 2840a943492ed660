#!/bin/sh
# The service of the datastore, as an image has it.
one="--pidfile /run/mariadb.pid"
case $1 in
start)
	install -d -o mysql -g mysql /run/mysqld
	exec start-stop-daemon --start --oknodo --background --make-pidfile $one --output /var/log/mysqld.log --exec /usr/sbin/mariadbd -- --user=mysql
	;;
stop)
	exec start-stop-daemon --stop --oknodo --retry 60 --remove-pidfile $one --exec /usr/sbin/mariadbd
	;;
restart)
	"$0" stop && "$0" start
	;;
*)
	echo "Usage: $0 start|stop|restart" >&2
	exit 2
	;;
esac
