package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/yaml"
)

// pkgFile reads a file below pkg.
func pkgFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../../pkg", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestServiceFiles: the scripts are valid shell scripts, the property list is well-formed, and all of them start the
// minion.
func TestServiceFiles(t *testing.T) {
	for _, name := range []string{"freebsd/salt_minion", "init/salt-minion.sysv", "init/salt-master.sysv", "init/salt-minion.openrc", "init/salt-master.openrc"} {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", filepath.Join("../../../pkg", name)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	for name, words := range map[string][]string{
		"freebsd/salt_minion":                     {"# PROVIDE: salt_minion\n", "rcvar=salt_minion_enable\n", "/usr/local/bin/brine-minion minion", "run_rc_command \"$1\"\n"},
		"macos/io.github.brine-salt.minion.plist": {"<string>io.github.brine-salt.minion</string>", "<string>/usr/local/bin/brine-minion</string>"},
		"windows/install.ps1":                     {"$service = 'salt-minion'", "New-EventLog -LogName Application -Source $service", `'"{0}" minion' -f $program`, "#Requires -RunAsAdministrator"},
		"windows/uninstall.ps1":                   {"sc.exe delete $service", "Remove-EventLog"},
	} {
		text := pkgFile(t, name)
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %q", name, w)
			}
		}
		if n := strings.Count(text, "{") - strings.Count(text, "}"); strings.HasSuffix(name, ".ps1") && n != 0 {
			t.Errorf("%s: %d braces are open", name, n)
		}
	}
	d := xml.NewDecoder(strings.NewReader(pkgFile(t, "macos/io.github.brine-salt.minion.plist")))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the property list: %v", err)
		}
	}
}

// TestCompose checks the compose file: it uses known keys, and names that exist.
func TestCompose(t *testing.T) {
	v, err := yaml.Parse([]byte(pkgFile(t, "container/compose.yaml")), "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("it is %T", v)
	}
	known := map[string]string{"": "services volumes secrets", "service": "image depends_on environment volumes read_only tmpfs cap_drop security_opt restart " +
		"entrypoint command hostname user secrets healthcheck", "healthcheck": "test interval timeout retries"}
	check := func(what, kind string, m map[string]any) {
		for key := range m {
			if !slices.Contains(strings.Fields(known[kind]), key) {
				t.Errorf("%s: there is no key %s", what, key)
			}
		}
	}
	names := func(v any) (list []string) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				list = append(list, x.(string))
			}
		case map[string]any:
			for k := range v {
				list = append(list, k)
			}
		}
		return list
	}
	check("the file", "", file)
	services := file["services"].(map[string]any)
	if len(services) != 4 {
		t.Errorf("there are %d services", len(services))
	}
	for name, x := range services {
		s := x.(map[string]any)
		check(name, "service", s)
		if h, ok := s["healthcheck"].(map[string]any); ok {
			check(name, "healthcheck", h)
		}
		if image, _ := s["image"].(string); image == "" {
			t.Errorf("%s has no image", name)
		}
		for _, other := range names(s["depends_on"]) {
			if services[other] == nil {
				t.Errorf("%s depends on %s, which is missing", name, other)
			}
		}
		for _, secret := range names(s["secrets"]) {
			if file["secrets"].(map[string]any)[secret] == nil {
				t.Errorf("%s has the secret %s, which is missing", name, secret)
			}
		}
		for _, volume := range names(s["volumes"]) {
			from, _, _ := strings.Cut(volume, ":")
			_, has := file["volumes"].(map[string]any)[from]
			if _, err := os.Stat(filepath.Join("../../../pkg/container", from)); !has && err != nil {
				t.Errorf("%s mounts %s, which is missing", name, from)
			}
		}
	}
}
