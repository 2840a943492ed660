package data

import (
	"os"
	"testing"

	"github.com/brine-salt/brine/internal/datastore"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) {
	modulestest.Run(t, Module)
}

func TestBrokenStore(t *testing.T) {
	e := modulestest.Env(t)
	dir := e.Path(e.Opt("cachedir").(string))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(datastore.Path(dir), []byte{0xc1}, 0o600); err != nil {
		t.Fatal(err)
	}
	r := modules.NewRegistry(Module)
	for _, fun := range []string{"data.load", "data.keys"} {
		if res := r.Run(t.Context(), e, modules.Request{Fun: fun}); res.Err == nil {
			t.Errorf("%s of a broken store: %v", fun, res.Return)
		}
	}
	if res := r.Run(t.Context(), e, modules.Request{Fun: "data.clear"}); res.Return != true {
		t.Errorf("data.clear: %v", res.Return)
	}
	if res := r.Run(t.Context(), e, modules.Request{Fun: "data.update", Args: []any{"a", int64(1)}}); res.Return != true {
		t.Errorf("data.update: %v", res.Return)
	}
}
