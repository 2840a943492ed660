#!/bin/sh
# Installs stock Salt of the lines 3006, 3007 and 3008, with the client libraries that some of its modules need, into virtual
# environments and prints the settings that the interop tests read. The newest release of each line that the package index has
# is taken, once; delete the directory to renew it.
set -eu
dir=${BRINE_SALT_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/brine/salt}
mkdir -p "$dir"
for line in 3006 3007 3008; do
	venv=$dir/$line
	if [ ! -e "$venv/complete" ]; then
		rm -rf "$venv"
		python3 -m venv "$venv" >&2
		"$venv/bin/pip" install --quiet --disable-pip-version-check "salt==$line.*" >&2
		"$venv/bin/salt-minion" --version >"$venv/complete"
	fi
	if [ ! -e "$venv/libraries" ]; then
		# Salt's mysql.query fails with PyMySQL 1.2.
		"$venv/bin/pip" install --quiet --disable-pip-version-check 'PyMySQL<1.2' psycopg2-binary pyinotify redis sqlparse >&2
		touch "$venv/libraries"
	fi
	if [ ! -e "$venv/gitfs" ]; then
		"$venv/bin/pip" install --quiet --disable-pip-version-check GitPython >&2
		touch "$venv/gitfs"
	fi
	if [ ! -e "$venv/etcd" ]; then
		# Not what it depends on: with dnspython Salt looks up names in another way.
		"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps python-etcd >&2
		touch "$venv/etcd"
	fi
	if [ "$line" = 3007 ] && [ ! -e "$venv/augeas" ]; then
		# The last version that needs no C compiler; libaugeas comes with augtool.
		"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps python-augeas==1.1.0 >&2
		touch "$venv/augeas"
	fi
	if [ "$line" = 3007 ] && [ ! -e "$venv/etcd3" ]; then
		"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps etcd3-py semantic-version six >&2
		touch "$venv/etcd3"
	fi
	if [ "$line" = 3007 ] && [ ! -e "$venv/tls/complete" ]; then
		# Beside those that Salt demands: its module tls refuses a newer pyOpenSSL.
		rm -rf "$venv/tls"
		"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$venv/tls" 'pyOpenSSL<23.3' 'cryptography<42' >&2
		touch "$venv/tls/complete"
	fi
	if [ "$line" = 3007 ] && [ ! -e "$venv/docker/complete" ]; then
		# Apart as well: with it there are modules that ours has no match for.
		rm -rf "$venv/docker"
		"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$venv/docker" docker >&2
		touch "$venv/docker/complete"
	fi
	if [ "$line" = 3007 ] && [ ! -e "$venv/influxdb/complete" ]; then
		rm -rf "$venv/influxdb"
		"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$venv/influxdb" influxdb pytz >&2
		touch "$venv/influxdb/complete"
	fi
	if [ "$line" = 3007 ] && [ ! -e "$venv/kafka/complete" ]; then
		# Apart from the rest, or sys.list_returners would have one more than ours.
		rm -rf "$venv/kafka"
		"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$venv/kafka" confluent-kafka >&2
		touch "$venv/kafka/complete"
	fi
	echo "using $(cat "$venv/complete")" >&2
	echo "export BRINE_SALT_$line=$venv"
done
# The transports are tested against libzmq and against Salt's own channel classes.
echo "export BRINE_PYZMQ=$dir/3007/bin/python"
echo "export BRINE_SALT_PYTHONS=$dir/3006/bin/python:$dir/3007/bin/python:$dir/3008/bin/python"
# A client of Salt's HTTP interface.
if [ ! -e "$dir/pepper/complete" ]; then
	rm -rf "$dir/pepper"
	python3 -m venv "$dir/pepper" >&2
	"$dir/pepper/bin/pip" install --quiet --disable-pip-version-check salt-pepper >&2
	touch "$dir/pepper/complete"
fi
# Jinja2's own tests, whose templates our engine renders too.
if [ ! -e "$dir/jinja/complete" ]; then
	rm -rf "$dir/jinja"
	python3 -m venv "$dir/jinja" >&2
	"$dir/jinja/bin/pip" install --quiet --disable-pip-version-check jinja2==3.1.6 pytest trio >&2
	"$dir/jinja/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary :all: -d "$dir/jinja" jinja2==3.1.6 >&2
	tar -xzf "$dir"/jinja/jinja2-3.1.6.tar.gz -C "$dir/jinja" >&2
	touch "$dir/jinja/complete"
fi
# A server that speaks the interface of S3.
if [ ! -e "$dir/moto/complete" ]; then
	rm -rf "$dir/moto"
	python3 -m venv "$dir/moto" >&2
	"$dir/moto/bin/pip" install --quiet --disable-pip-version-check 'moto[server,s3]' >&2
	touch "$dir/moto/complete"
fi
echo "export BRINE_MOTO=$dir/moto/bin/moto_server"
echo "export BRINE_JINJA=$dir/jinja"
echo "export BRINE_PEPPER=$dir/pepper/bin/pepper"
