//go:build unix

package ssh

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) {
	m := *Module
	m.Available = nil // the empty host of the suite has no programs
	modulestest.Run(t, &m)
}

func TestAvailable(t *testing.T) {
	e := modulestest.Env(t)
	r := modules.NewRegistry(Module)
	res := r.Run(t.Context(), e, modules.Request{Fun: "ssh.host_keys"})
	if want := "'ssh' __virtual__ returned False: The module requires the ssh binary."; res.Return != want {
		t.Errorf("without ssh: %v", res.Return)
	}
	bin := filepath.Join(e.Root, "usr", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.Reset()
	if res := r.Run(t.Context(), e, modules.Request{Fun: "ssh.check_known_host"}); res.Err != nil {
		t.Errorf("with ssh: %v", res.Err)
	}
}
