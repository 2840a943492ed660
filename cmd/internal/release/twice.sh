#!/bin/sh
# Makes two releases of the last commit, in clones with names of different lengths, and compares every byte. "make release-test" runs it.
# Arguments are for make: PLATFORMS=linux/amd64 makes it shorter.
set -eu
top=$(git rev-parse --show-toplevel)
commit=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go run "$top/cmd/internal/release/throwaway" "$work"
for name in one another-directory; do
	git clone -q "$top" "$work/$name"
	git -C "$work/$name" checkout -q --detach "$commit"
	echo "== release in $name"
	umask $([ $name = one ] && echo 022 || echo 027)
	make -s -C "$work/$name" release VERSION=0.1.0 KEY="$work/key" "$@" >"$work/$name.log" 2>&1 || { tail -n 40 "$work/$name.log"; exit 1; }
done
first=$work/one/bin/release/0.1.0 second=$work/another-directory/bin/release/0.1.0
diff -r "$first" "$second"
cd "$first"
echo "== $(ls | wc -l) files are the same"
sha256sum --quiet --check SHA256SUMS
minion=$work/one/bin/release/programs/linux-$(go env GOARCH)/brine-minion
set -- $(ls | grep -v '\.minisig$')
"$minion" verify --keys "$work/release.pub" "$@" >"$work/verified"
[ "$(wc -l <"$work/verified")" = $# ]
# One flipped bit is found.
printf '\001' | dd of=SHA256SUMS conv=notrunc bs=1 count=1 2>/dev/null
if "$minion" verify --keys "$work/release.pub" SHA256SUMS; then
	echo "a changed file is verified" >&2
	exit 1
fi
ls -l
