#!/bin/sh
# Prepares the files for the user that the configuration names. The unit starts the master as "salt"; for another user, as with stock's
# older packages, it gets a drop-in.
set -e

user=$(cat /etc/salt/master /etc/salt/master.d/*.conf 2>/dev/null | sed -n "s/^user:[[:space:]]*//p" | tail -n 1 | tr -d "\"' ")
user=${user:-root}
dropin=/etc/systemd/system/salt-master.service.d/brine-user.conf
if [ "$user" = salt ]; then
	rm -f "$dropin"
	for dir in /etc/salt/pki/master /var/cache/salt/master; do
		[ ! -d "$dir" ] || find "$dir" -xdev -user root -exec chown --no-dereference salt:salt {} +
	done
	for log in /var/log/salt/master /var/log/salt/key /var/log/salt/api; do
		[ ! -f "$log" ] || chown --no-dereference salt:salt "$log"
	done
	exit 0
fi
group=$(id -gn "$user" 2>/dev/null) || { echo "brine-master: the user $user of /etc/salt/master is missing" >&2; exit 0; }
mkdir -p "${dropin%/*}"
{
	printf '%s\n' "# Written by the package for the option user of /etc/salt/master." "[Service]" "User=$user" "Group=$group"
	printf '%s\n' "Environment=HOME=$(getent passwd "$user" | cut -d: -f6)" "PrivateUsers=no" "ProtectHome=no"
	if [ "$user" = root ]; then
		printf '%s\n' "CapabilityBoundingSet=CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_SETGID CAP_SETUID"
		printf '%s\n' "SystemCallFilter=@setuid @chown"
	fi
} >"$dropin"
echo "brine-master: /etc/salt/master says that the master runs as $user; docs/upgrade.md says how it becomes salt" >&2
