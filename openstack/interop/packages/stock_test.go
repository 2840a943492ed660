//go:build packages

package packages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stockVersion is the version of the packages that are made from the Python index's Salt, which itself reports
// another version.
const stockVersion = "3007.1"

// stockDebs makes Debian packages of stock Salt with the files and relations of the original ones: salt-common,
// salt-minion and salt-master. Debian 12 has no such packages.
func stockDebs(t *testing.T) (common, minion, master string) {
	t.Helper()
	venv := os.Getenv("BRINE_SALT_3007")
	sites, err := filepath.Glob(venv + "/lib/python3*/site-packages")
	if venv == "" || err != nil || len(sites) != 1 {
		t.Fatalf("there is no stock Salt in %q: make packages-test sets BRINE_SALT_3007", venv)
	}
	dir := t.TempDir()
	build := func(name, fields string, fill func(root string)) string {
		root := filepath.Join(dir, name)
		fill(root)
		write(t, root+"/DEBIAN/control", 0o644, fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: test <test@example.org>\n%sDescription: stock\n",
			name, stockVersion, fields))
		deb := filepath.Join(dir, name+".deb")
		output(t, "dpkg-deb", "-Znone", "--root-owner-group", "--build", root, deb)
		return deb
	}
	program := func(root, name string) {
		write(t, root+"/usr/bin/"+name, 0o755, fmt.Sprintf("#!/usr/bin/python3\nimport sys\nsys.path.insert(0, '/opt/saltstack/salt')\n"+
			"from salt.scripts import %[1]s\nsys.exit(%[1]s())\n", strings.ReplaceAll(name, "-", "_")))
	}
	daemon := func(root, name string) {
		program(root, name)
		write(t, root+"/usr/lib/systemd/system/"+name+".service", 0o644, "[Unit]\nDescription=stock\n[Service]\nType=notify\nNotifyAccess=all\nKillMode=process\n"+
			"LimitNOFILE=8192\nExecStart=/usr/bin/"+name+"\n[Install]\nWantedBy=multi-user.target\n")
		role := strings.TrimPrefix(name, "salt-")
		write(t, root+"/etc/salt/"+role, 0o644, "# stock's sample\n")
		write(t, root+"/DEBIAN/conffiles", 0o644, "/etc/salt/"+role+"\n")
		write(t, root+"/DEBIAN/prerm", 0o755, fmt.Sprintf("#!/bin/sh\n[ ! -d /run/systemd/system ] || [ \"$1\" != remove ] || deb-systemd-invoke stop %s.service\n", name))
		write(t, root+"/DEBIAN/postrm", 0o755, fmt.Sprintf("#!/bin/sh\n[ \"$1\" != purge ] || deb-systemd-helper purge %s.service >/dev/null\n", name))
		write(t, root+"/DEBIAN/postinst", 0o755, fmt.Sprintf("#!/bin/sh\ndeb-systemd-helper unmask %[1]s.service >/dev/null\ndeb-systemd-helper enable %[1]s.service >/dev/null\n"+
			"[ ! -d /run/systemd/system ] || { systemctl daemon-reload; [ %[1]s = salt-master ] || deb-systemd-invoke restart %[1]s.service; }\n", name))
	}
	common = build("salt-common", "", func(root string) {
		lib := root + "/opt/saltstack/salt"
		if err := os.MkdirAll(lib, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-ec", `tar -C "$0" --exclude=__pycache__ --exclude=./libcloud --exclude=./pip --exclude=./virtualenv -c . | tar -C "$1" -x`, sites[0], lib)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		program(root, "salt-call")
		write(t, root+"/usr/share/fish/vendor_completions.d/salt-call.fish", 0o644, "# stock's\n")
	})
	minion = build("salt-minion", "Depends: salt-common\n", func(root string) { daemon(root, "salt-minion") })
	master = build("salt-master", "Depends: salt-common\n", func(root string) { daemon(root, "salt-master") })
	return common, minion, master
}

// write writes a file, and creates its directory.
func write(t *testing.T, name string, mode os.FileMode, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}
