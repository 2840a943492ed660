package client_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/client"
)

type m = map[string]any

// function is what a master does with a request for a runner or wheel function.
func (f *fake) function(load m) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.keys, load["key"].(string)) {
		return m{"error": m{"name": "UserAuthenticationError", "message": "refused"}}
	}
	kind := load["cmd"].(string)
	tag := "salt/" + map[string]string{"runner": "run", "wheel": "wheel"}[kind] + "/20250102030405678901"
	data := m{"fun": load["fun"], "success": true, "tag": tag, "return": []any{load["arg"], load["kwarg"], load["saltenv"]}}
	switch {
	case load["fun"] == "no.such":
		return m{"error": m{"name": "KeyError", "message": "'no.such' is not available."}}
	case load["fun"] == "no.end":
		return m{"tag": tag, "jid": "20250102030405678901"}
	case load["fun"] == "minions.connected":
		there := []any{}
		for id, x := range f.minions {
			if x.think > 0 {
				there = append(there, id)
			}
		}
		data["return"] = there
		return m{"tag": tag, "data": data}
	case kind == "wheel":
		return m{"tag": tag, "data": data}
	}
	delete(data, "tag")
	f.ipc.Admit()
	f.bus.Publish(tag+"/new", m{"fun": load["fun"]})
	f.bus.Publish("salt/run/20250102030405678902/ret", m{"return": "another run"})
	f.bus.Publish(tag+"/ret", data)
	return m{"tag": tag, "jid": "20250102030405678901"}
}

func TestCall(t *testing.T) {
	f := newFake(t, nil)
	c := f.client()
	call := func(kind, fun string) (any, error) {
		got, err := c.Call(t.Context(), client.FunctionCall{Kind: kind, Fun: fun, Args: []any{"a"}, Kwargs: m{"b": "c"}, Saltenv: "dev"})
		delete(got, "_stamp")
		return got, err
	}
	for _, kind := range []string{"runner", "wheel"} {
		want := m{"fun": "x.y", "success": true, "return": []any{[]any{"a"}, m{"b": "c"}, "dev"}}
		if kind == "runner" {
			want["return"] = []any{nil, m{"arg": []any{"a"}, "kwarg": m{"b": "c"}}, "dev"}
		}
		got, err := call(kind, "x.y")
		if diff := cmp.Diff(any(want), got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", kind, err, diff)
		}
		if _, err := call(kind, "no.such"); !errors.Is(err, client.ErrNoFunction) {
			t.Errorf("%s: an unknown function gives %v", kind, err)
		}
	}
	// A restarted master has a new key.
	f.mu.Lock()
	f.keys = []string{"other"}
	f.mu.Unlock()
	if _, err := call("wheel", "x.y"); err == nil || err.Error() != "refused" {
		t.Errorf("a wrong key gives %v", err)
	}
	f.writeKey("other")
	if _, err := call("wheel", "x.y"); err != nil {
		t.Errorf("the new key gives %v", err)
	}
	// A caller whose context ends gets the context's error.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Call(ctx, client.FunctionCall{Kind: "runner", Fun: "no.end"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was given up gives %v", err)
	}
}

func TestCallWithoutMaster(t *testing.T) {
	f := newFake(t, nil)
	c, err := client.New(client.Options{Dialer: f, Addr: "127.0.0.1:4506", SockDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Call(t.Context(), client.FunctionCall{Kind: "runner", Fun: "x.y"}); !errors.Is(err, client.ErrNotRunning) {
		t.Errorf("without a master the error is %v", err)
	}
}
