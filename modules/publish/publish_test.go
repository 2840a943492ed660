package publish

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestPublish(t *testing.T) {
	e := modulestest.Env(t)
	var asked []map[string]any
	polls := 0
	e.Master = modulestest.Master(func(_ context.Context, load map[string]any) (any, error) {
		asked = append(asked, load)
		switch load["cmd"] {
		case "minion_pub":
			return map[string]any{"jid": "20260101000000000000", "minions": []any{"a", "b"}}, nil
		case "pub_ret":
			if polls++; polls == 1 {
				return map[string]any{"a": map[string]any{"ret": int64(1)}}, nil
			}
			return map[string]any{"a": map[string]any{"ret": int64(1)}, "b": map[string]any{"ret": int64(2), "out": "x"}}, nil
		}
		return []any{"down"}, nil
	})
	call := func(fun string, args ...any) any {
		t.Helper()
		asked, polls = nil, 0
		res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: fun, Args: args})
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		return res.Return
	}
	if diff := cmp.Diff(map[string]any{"a": int64(1), "b": int64(2)}, call("publish.publish", "*", "test.echo", "[x, 1]")); diff != "" {
		t.Error(diff)
	}
	want := map[string]any{"cmd": "minion_pub", "fun": "test.echo", "arg": []any{"x", int64(1)}, "tgt": "*", "tgt_type": "glob", "ret": "",
		"tmo": int64(5), "form": "clean", "id": "minion", "no_parse": []any{}}
	if diff := cmp.Diff(want, asked[0]); diff != "" {
		t.Error(diff)
	}
	full := map[string]any{"a": map[string]any{"ret": int64(1)}, "b": map[string]any{"ret": int64(2), "out": "x"}}
	if diff := cmp.Diff(full, call("publish.full_data", "*", "test.echo", "text")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{}, call("publish.publish", "*", "publish.publish")); diff != "" || asked != nil {
		t.Error(diff, asked)
	}
	if diff := cmp.Diff([]any{"down"}, call("publish.runner", "manage.down")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"cmd": "minion_runner", "fun": "manage.down", "arg": []any{}, "tmo": int64(5), "id": "minion", "no_parse": []any{}}, asked[0]); diff != "" {
		t.Error(diff)
	}
}
