#!/bin/sh
# Replays stock's answers on a machine that has little in common with the one where they were given: another name and processor,
# an empty /etc, no network, no programs but the basic ones, first as root and then as nobody. Cases that fail there need that
# host, or root; their answers are marked so. Called as root by `make answers`, with the directories of the tests.
set -eu

if [ "${1-}" = inside ]; then
	root=$2
	shift 2
	hostname elsewhere
	mount -t tmpfs -o mode=755 tmpfs "$root"
	mkdir -p "$root/dev" "$root/etc" "$root/proc" "$root/root" "$root/tmp" "$root/usr/bin" "$root/usr/lib" "$root/host/bin" "$root/var/tmp"
	chmod 1777 "$root/tmp" "$root/var/tmp"
	mount --rbind /usr/bin "$root/host/bin"
	mount --rbind /usr/lib "$root/usr/lib"
	mount --rbind /dev "$root/dev"
	mount -t proc proc "$root/proc"
	for file in cpuinfo meminfo version uptime loadavg; do
		echo "unknown : 0" >"$root/tmp/$file"
		mount --bind "$root/tmp/$file" "$root/proc/$file"
	done
	for dir in bin sbin; do
		ln -s usr/bin "$root/$dir"
	done
	for dir in lib lib64; do
		[ ! -d "/usr/$dir" ] || [ "$dir" = lib ] || { mkdir -p "$root/usr/$dir"; mount --rbind "/usr/$dir" "$root/usr/$dir"; }
		ln -s "usr/$dir" "$root/$dir"
	done
	# What every Linux has, whatever it is called there.
	dpkg -L bash coreutils dash diffutils findutils grep gzip mawk sed tar | sed -n 's,^\(/usr\)*/bin/,,p' | while read -r name; do
		ln -s "/host/bin/$name" "$root/usr/bin/$name"
	done
	ln -s /host/bin/mawk "$root/usr/bin/awk"
	ln -s /host/bin/dash "$root/usr/bin/sh" 2>/dev/null || true
	printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
	mkdir -p "$root/src/interop/oracle"
	cp -r interop/oracle/bin "$root/src/interop/oracle/"
	for dir in "$@"; do
		mkdir -p "$root/src/$dir"
		cp -r "$dir/testdata" "$dir/replay.test" "$root/src/$dir/"
	done
	chown -R nobody "$root/src"
	for dir in "$@"; do
		for who in "host 0" "root 65534"; do
			# Failures are what is looked for here.
			chroot --userspec="${who#* }:${who#* }" "$root" /host/bin/setarch --uname-2.6 env -i PATH=/usr/bin TMPDIR=/tmp HOME=/root USER=root \
				sh -c "cd /src/$dir && ./replay.test -test.run '^TestReplay\$' -suspect ${who% *} 2>&1" | tail -n 3
			cp "$root/src/$dir/testdata/stock/answers/"*.jsonl "$dir/testdata/stock/answers/"
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
