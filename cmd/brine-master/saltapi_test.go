//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/conf"
)

// TestSocketOfTheAPI tests the mode of the socket, and that it replaces a left-over socket but no other file.
func TestSocketOfTheAPI(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.sock")
	o := &conf.Config{Opts: map[string]any{"socket": path}}
	left, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	ln, err := listenAPI(o)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeSocket|0o660 {
		t.Error(info, err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	ln.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Error("it is still there", err)
	}
	if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ln, err := listenAPI(o); err == nil {
		ln.Close()
		t.Error("it takes the place of a file")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "kept" {
		t.Errorf("%q %v", b, err)
	}
}
