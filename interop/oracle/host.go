package oracle

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// users are those of a host that has just been installed, by their numbers; each has a group of its name, as the groups below.
const users = "root:0 daemon:1 bin:2 sys:3 sync:4 games:5 man:6 mail:8 www-data:33 backup:34 _apt:42 messagebus:101 polkitd:102 " +
	"rabbitmq:103 nobody:65534"

// groups are those beside the groups of the users.
const groups = "adm:4 tty:5 disk:6 cdrom:24 floppy:25 sudo:27 audio:29 shadow:43 utmp:44 video:45 staff:50 games:60 users:100 crontab:110 " +
	"nogroup:65534"

// directories are those of a host that has just been installed, beside those of every Unix.
const directories = "/etc/apt/apt.conf.d /etc/apt/sources.list.d /etc/cron.d /etc/default /etc/init.d /etc/modprobe.d " +
	"/etc/modules-load.d /etc/network/if-down.d /etc/network/if-up.d /etc/network/interfaces.d /etc/systemd/system " +
	"/lib/systemd/system /usr/local/bin /usr/local/sbin /usr/share/i18n /var/lib/apt/lists /var/lib/dpkg /var/log " +
	"/var/spool/cron/atjobs /var/spool/cron/crontabs"

// emptied are directories in which such a host has nothing.
const emptied = "/etc/apt/apt.conf.d /etc/apt/sources.list.d /var/lib/apt/lists"

// PlainHost gives a host of the test's own the users, groups, names and directories that every such host has, so that answers do not depend
// on the machine, and tell nothing of it.
func PlainHost(t testing.TB) {
	t.Helper()
	var passwd, group, shadow, gshadow strings.Builder
	line := func(b *strings.Builder, fields ...string) { b.WriteString(strings.Join(fields, ":") + "\n") }
	for of := range strings.FieldsSeq(groups) {
		name, gid, _ := strings.Cut(of, ":")
		line(&group, name, "x", gid, "")
		line(&gshadow, name, "*", "", "")
	}
	for of := range strings.FieldsSeq(users) {
		name, uid, _ := strings.Cut(of, ":")
		home, shell, gid := "/nonexistent", "/usr/sbin/nologin", uid
		switch name {
		case "root":
			home, shell = "/root", "/bin/bash"
		case "sync":
			gid = "65534"
		case "games":
			gid = "60"
		case "_apt":
			gid = "65534"
		}
		if gid == uid && gid != "65534" {
			line(&group, name, "x", gid, "")
			line(&gshadow, name, "*", "", "")
		}
		line(&passwd, name, "x", uid, gid, name, home, shell)
		line(&shadow, name, "*", "19000", "0", "99999", "7", "", "", "")
	}
	var err error
	for dir := range strings.FieldsSeq(directories) {
		err = errors.Join(err, os.MkdirAll(dir, 0o755))
	}
	for _, f := range [...]struct {
		path, text string
		mode       os.FileMode
	}{
		{"/etc/passwd", passwd.String(), 0o644}, {"/etc/group", group.String(), 0o644},
		{"/etc/shadow", shadow.String(), 0o600}, {"/etc/gshadow", gshadow.String(), 0o600},
		{"/etc/subuid", "", 0o644}, {"/etc/subgid", "", 0o644},
		{"/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n", 0o644}, {"/etc/hostname", "salted\n", 0o644},
		{"/etc/resolv.conf", "nameserver 192.0.2.1\n", 0o644}, {"/etc/fstab", "", 0o644},
	} {
		_ = os.Remove(f.path)
		err = errors.Join(err, os.WriteFile(f.path, []byte(f.text), f.mode), os.Chmod(f.path, f.mode))
	}
	// What a machine has here says where its packages come from.
	for dir := range strings.FieldsSeq(emptied) {
		list, _ := os.ReadDir(dir) // that there is none was said above
		for _, e := range list {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	// The files that dpkg gives to users which the machine has and this host has not: it would do nothing any more.
	if override := "/var/lib/dpkg/statoverride"; err == nil {
		if _, missing := os.Stat(override); missing == nil {
			err = os.WriteFile(override, nil, 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
