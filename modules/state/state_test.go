package state_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/state"
)

func TestModule(t *testing.T) { modulestest.Run(t, state.Module) }

// What stock 3007 calls for values of sync_mods, and says in its log.
func TestSyncMods(t *testing.T) {
	for _, c := range []struct {
		given       any
		want, warns []string
	}{
		{nil, nil, nil},
		{"states,modules", []string{"states base", "modules base"}, nil},
		{"all, modules", []string{"all base"}, nil},
		{[]any{"states", "all"}, []string{"all base"}, nil},
		{[]any{"states", int64(7)}, []string{"states base"}, []string{"7"}},
		{[]any{}, nil, nil},
		{true, []string{"all base"}, nil},
		{false, nil, []string{"False"}},
		{int64(5), nil, []string{"5"}},
		{"", nil, []string{""}},
		{"nosuch", nil, []string{"nosuch"}},
		{map[string]any{"a": int64(1)}, nil, []string{"{'a': 1}"}},
	} {
		var did []string
		saltutil := &modules.Module{Name: "saltutil", Funcs: []modules.Def{{Name: "is_running", Params: []modules.Param{{Name: "fun"}},
			Run: func(context.Context, *modules.Call) (any, error) { return []any{}, nil }}}}
		for _, kind := range []string{"all", "modules", "states"} {
			saltutil.Funcs = append(saltutil.Funcs, modules.Def{Name: "sync_" + kind, Params: []modules.Param{{Name: "saltenv"}},
				Run: func(_ context.Context, c *modules.Call) (any, error) {
					did = append(did, kind+" "+c.Str("saltenv"))
					return []any{}, nil
				}})
		}
		var log bytes.Buffer
		e := modulestest.Env(t)
		e.Log = slog.New(slog.NewTextHandler(&log, nil))
		kwargs := map[string]any{}
		if c.given != nil {
			kwargs["sync_mods"] = c.given
		}
		// There is no such SLS: what is to be synchronized comes before anybody looks for it.
		modules.NewRegistry(state.Module, saltutil).Run(t.Context(), e, modules.Request{Fun: "state.apply", Args: []any{"nosuch"}, Kwargs: kwargs})
		if d := cmp.Diff(c.want, did); d != "" {
			t.Errorf("%v: %s", c.given, d)
		}
		if n := strings.Count(log.String(), "Invalid custom module type"); n != len(c.warns) {
			t.Errorf("%v: %d warnings in %s", c.given, n, log.String())
		}
		for _, w := range c.warns {
			if text := fmt.Sprintf("Invalid custom module type '%s', ignoring", w); !strings.Contains(log.String(), text) {
				t.Errorf("%v: not %q in %s", c.given, text, log.String())
			}
		}
	}
}
