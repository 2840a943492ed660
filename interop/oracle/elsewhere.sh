#!/bin/sh
# Replays stock's answers on a machine that has little in common with the one where they were given: another name and processor,
# an empty /etc, no network, no programs but the basic ones, six weeks later, first as root and then as nobody. Cases that fail there need that
# host, or root; their answers are marked so. Cases that change the host are replayed here as well, where there are more programs
# than were recorded. Called as root by `make answers`, with the directories of the tests.
set -eu

if [ "${1-}" = inside ]; then
	root=$2
	shift 2
	hostname elsewhere
	ip link set lo up # servers of the tests are there
	mount -t tmpfs -o mode=755 tmpfs "$root"
	for dir in boot dev etc home host/bin host/lib media mnt opt proc root run srv sys tmp usr/bin usr/sbin usr/lib usr/local/bin usr/share \
		var/cache var/lib var/log var/spool var/tmp; do
		mkdir -p "$root/$dir"
	done
	chmod 1777 "$root/tmp" "$root/var/tmp"
	mount --rbind /usr/bin "$root/host/bin"
	mount --rbind /usr/lib "$root/host/lib"
	mount --rbind /dev "$root/dev"
	mount -t proc proc "$root/proc"
	for file in cpuinfo meminfo version uptime loadavg; do
		echo "unknown : 0" >"$root/tmp/$file"
		mount --bind "$root/tmp/$file" "$root/proc/$file"
	done
	for dir in bin sbin; do
		ln -s "usr/$dir" "$root/$dir"
	done
	# Libraries are outside of /usr: a layer over that would not have what is mounted in it.
	for lib in /usr/lib/*-linux-*; do
		ln -s "/host/lib/${lib##*/}" "$root/usr/lib/"
	done
	ln -s usr/lib "$root/lib"
	[ ! -d /usr/lib64 ] || { mkdir -p "$root/host/lib64"; mount --rbind /usr/lib64 "$root/host/lib64"; ln -s host/lib64 "$root/lib64"; }
	# What every Linux has, whatever it is called there (basicPackages in programs.go).
	dpkg -L libc-bin bash coreutils dash diffutils findutils grep gzip mawk sed tar | sed -n 's,^\(/usr\)*/bin/,,p' | while read -r name; do
		ln -s "/host/bin/$name" "$root/usr/bin/$name"
	done
	ln -s /host/bin/mawk "$root/usr/bin/awk"
	ln -s /host/bin/dash "$root/usr/bin/sh" 2>/dev/null || true
	printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
	mkdir -p "$root/src/interop/oracle"
	cp -r interop/oracle/bin interop/oracle/found "$root/src/interop/oracle/"
	for dir in "$@"; do
		mkdir -p "$root/src/$dir"
		cp -r "$dir/testdata" "$dir/replay.test" "$root/src/$dir/"
	done
	chown -R nobody "$root/src"
	for dir in "$@"; do
		for who in "host 0" "root 65534"; do
			# Failures are what is looked for here.
			chroot --userspec="${who#* }:${who#* }" "$root" /host/bin/setarch --uname-2.6 env -i PATH=/usr/bin TMPDIR=/tmp HOME=/root USER=root \
				sh -c "cd /src/$dir && ./replay.test -test.run '^TestReplay\$' -later 1000h -suspect ${who% *} 2>&1" | tail -n 3
			cp -r "$root/src/$dir/testdata/stock/answers" "$dir/testdata/stock/"
		done
	done
	exit 0
fi

for dir in "$@"; do
	CGO_ENABLED=0 "${GO:-go}" test -c -vet=off -o "$dir/replay.test" "./$dir"
done
root=$(mktemp -d)
trap 'rm -f modules/replay.test states/replay.test; rmdir "$root"' EXIT
unshare --mount --uts --net --pid --ipc --fork sh "$0" inside "$root" "$@"
for dir in "$@"; do
	(cd "$dir" && ./replay.test -test.run '^TestReplay$' -suspect host 2>&1) | tail -n 3
done
