package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "minion")
	if err := os.WriteFile(path, []byte("id: web1\nmaster: salt.example.org\nlog_level: debug\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := Load(path, map[string]any{"log_level": "error"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{"id": "web1", "master": "salt.example.org", "log_level": "error", "hash_type": "sha256"} {
		if opts[name] != want {
			t.Errorf("%s: %v, want %v", name, opts[name], want)
		}
	}
	if _, err := Load(path, map[string]any{"id": "../x"}); err == nil {
		t.Error("an id that is no file name is taken")
	}
}
