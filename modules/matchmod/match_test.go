package matchmod

import (
	"testing"

	"github.com/brine-salt/brine/internal/datastore"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestData(t *testing.T) {
	e := modulestest.Env(t)
	e.Root = ""
	if err := datastore.Change(datastore.Path(t.TempDir()), func(map[string]any) bool { return false }); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	opts := map[string]any{"cachedir": dir}
	e.Opts = func() map[string]any { return opts }
	if err := datastore.Save(datastore.Path(dir), map[string]any{"spam": "eggs"}); err != nil {
		t.Fatal(err)
	}
	r := modules.NewRegistry(Module)
	for tgt, want := range map[string]bool{"spam:e*": true, "spam:ham": false, "spam": false} {
		if res := r.Run(t.Context(), e, modules.Request{Fun: "match.data", Args: []any{tgt}}); res.Return != want {
			t.Errorf("%s: %v, %v", tgt, res.Return, res.Err)
		}
	}
}
