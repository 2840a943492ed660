package states_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// TestUmask creates a file under a state's umask, and one without it afterwards.
func TestUmask(t *testing.T) {
	dir := t.TempDir()
	touch := &states.Module{Name: "touch", Funcs: []states.Def{{Name: "made", Params: []modules.Param{{Name: "name"}}, Run: func(_ context.Context, c *states.Call) (*states.Result, error) {
		path := filepath.Join(dir, c.Low.ID())
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		return c.Result().As(states.True, fmt.Sprintf("%o", info.Mode().Perm()))
	}}}}
	before, err := os.Create(filepath.Join(dir, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	info, err := before.Stat()
	if err != nil {
		t.Fatal(err)
	}
	high := parse(t, "a: {touch: [made, {umask: '077'}]}\nb: {touch: [made, {umask: '0137'}]}\nc: {touch: [made]}\n")
	got, _ := apply(t, bare(t), high, states.Options{Registry: states.NewRegistry(touch)})
	want := map[string]string{"a": "true 600", "b": "true 640", "c": fmt.Sprintf("true %o", info.Mode().Perm())}
	for id := range want {
		if got[id] != want[id] {
			t.Errorf("%s: %s, want %s", id, got[id], want[id])
		}
	}
}
