package event

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestSend(t *testing.T) {
	e := modulestest.Env(t)
	var got map[string]any
	e.Master = modulestest.Master(func(_ context.Context, load map[string]any) (any, error) {
		got = load
		return true, nil
	})
	r := modules.NewRegistry(Module)
	send := func(kwargs map[string]any, args ...any) any {
		t.Helper()
		got = nil
		res := r.Run(t.Context(), e, modules.Request{Fun: "event.send", Args: args, Kwargs: kwargs, Pub: map[string]any{"jid": "1"}})
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		return res.Return
	}
	if ok := send(map[string]any{"with_grains": []any{"os", "nosuch"}, "with_pillar": true, "with_env_opts": true, "a": int64(1)},
		"my/tag", map[string]any{"a": int64(2)}); ok != true {
		t.Errorf("answer %v", ok)
	}
	want := map[string]any{"cmd": "_minion_event", "tag": "my/tag", "data": map[string]any{
		"grains": map[string]any{"os": "Debian"}, "pillar": map[string]any{"a": map[string]any{"b": "c"}},
		"saltenv": "base", "pillarenv": nil, "a": int64(2), "__pub_jid": "1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	t.Setenv("BRINE_EVENT", "x")
	send(map[string]any{"with_env": []any{"BRINE_EVENT"}, "preload": map[string]any{"grains": "g"}}, "t")
	want = map[string]any{"cmd": "_minion_event", "id": "minion", "tag": "t", "grains": "g",
		"data": map[string]any{"environ": map[string]any{"BRINE_EVENT": "x"}, "__pub_jid": "1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	e.Master = modulestest.Master(func(context.Context, map[string]any) (any, error) { return nil, errors.New("away") })
	if ok := send(nil, "t"); ok != false {
		t.Errorf("an event that did not arrive answers %v", ok)
	}
	opts := map[string]any{"file_client": "local"}
	e.Opts = func() map[string]any { return opts }
	if ok := send(nil, "t"); ok != true || len(e.Agent.(*modulestest.Agent).Done) != 1 {
		t.Errorf("without master: %v, %v", ok, e.Agent.(*modulestest.Agent).Done)
	}
}
