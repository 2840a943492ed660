//go:build linux

package testserver

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// importScript creates an image from programs of this host. $1 is a directory, $2 the daemon's socket, $3 the tag, $4
// the text of the entry point, $5 a user, $6 directories that the programs read, $7 directories that they write to;
// the other arguments are the programs.
const importScript = `set -eu
root=$1 socket=$2 tag=$3 entrypoint=$4 user=$5 dirs=$6 writable=$7
shift 7
mkdir -p "$root/bin" "$root/etc" "$root/tmp" "$root/usr/bin"
chmod 1777 "$root/tmp"
cp "$(command -v busybox)" "$root/bin/busybox"
for name in $(busybox --list); do [ -e "$root/bin/$name" ] || ln -s busybox "$root/bin/$name"; done
printf 'root:x:0:0:root:/:/bin/sh\nserver:x:%s:%s:server:/tmp:/bin/sh\n' "$user" "$user" >"$root/etc/passwd"
for dir in $dirs; do mkdir -p "$root$dir"; cp -a "$dir/." "$root$dir/"; done
for program; do
	cp -L --parents "$program" "$root"
	[ "${program%/*}" = /usr/bin ] || ln -sf "$program" "$root/usr/bin/"
done
find "$root" -type f \( -perm -100 -o -name '*.so*' \) | while read -r file; do ldd "$file" 2>/dev/null || true; done |
	sed -n 's|.*[[:space:]]\(/[^ ]*\) (0x.*|\1|p' | sort -u | while read -r file; do cp -L --parents "$file" "$root"; done
for dir in $writable; do mkdir -p "$root$dir"; chown "$user:$user" "$root$dir"; done
printf '%s' "$entrypoint" >"$root/entrypoint"
chmod 755 "$root/entrypoint"
tar -C "$root" -c . | docker --host="unix://$socket" import --change 'ENTRYPOINT ["/entrypoint"]' --change 'CMD []' --change "USER $user" \
	--change "ENV PATH=/usr/bin:/bin" - "$tag" >&2
`

// An Image contains programs of this host, the libraries that they need, and busybox.
type Image struct {
	Tag      string
	Programs []string // names for Program
	// Reads lists directories that are copied from the host; Writes lists empty ones that belong to User.
	Reads, Writes string
	// Entrypoint is the text of the script that the image starts. User is the id of the user who runs it, or "" for
	// root.
	Entrypoint, User string
}

// Import imports the image into the daemon started by [Docker].
func (i Image) Import(t testing.TB, socket string) {
	t.Helper()
	Program(t, "busybox")
	dir, _ := Dir(t, "")
	user := i.User
	if user == "" {
		user = "0"
	}
	argv := []string{"-c", importScript, "sh", filepath.Join(dir, "root"), socket, i.Tag, i.Entrypoint, user, i.Reads, i.Writes}
	for _, name := range i.Programs {
		argv = append(argv, Program(t, name))
	}
	if out, err := exec.CommandContext(t.Context(), "sh", argv...).CombinedOutput(); err != nil {
		t.Fatalf("cannot import the image %s: %v\n%s", i.Tag, err, out)
	}
}
