package minionmod

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestList(t *testing.T) {
	e := modulestest.Env(t)
	e.Opts = func() map[string]any { return map[string]any{"pki_dir": "/etc/salt/pki/minion"} }
	dir := filepath.Join(e.Root, "etc/salt/pki/master/minions")
	err := os.MkdirAll(dir, 0o755)
	for _, name := range []string{"b", "A", ".key_cache"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "minion.list"})
	want := map[string]any{"minions": []any{"A", "b"}, "minions_pre": []any{}, "minions_rejected": []any{}, "minions_denied": []any{}}
	if diff := cmp.Diff(want, res.Return); diff != "" {
		t.Error(diff)
	}
}
