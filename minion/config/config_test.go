package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/minion/config"
)

// TestSettings: settings of a program count as if they were in the file, and so move directories that depend on them.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "minion")
	if err := os.WriteFile(path, []byte("master: elsewhere\nmaster_port: 1234\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"", path} {
		opts, err := config.Load(file, map[string]any{"id": "web1", "root_dir": dir, "master": "here"})
		if err != nil {
			t.Fatal(err)
		}
		port := any(int64(4506))
		if file != "" {
			port = int64(1234)
		}
		for key, want := range map[string]any{"id": "web1", "master": "here", "master_port": port, "pki_dir": filepath.Join(dir, "etc/salt/pki/minion"),
			"cachedir": filepath.Join(dir, "var/cache/salt/minion")} {
			if opts[key] != want {
				t.Errorf("%q: %s is %v, want %v", file, key, opts[key], want)
			}
		}
	}
}
