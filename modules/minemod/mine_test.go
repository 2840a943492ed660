package minemod

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// minion is a minion with a mine on a master, and functions "x.echo" and "config.merge".
type minion struct {
	env   *modules.Env
	r     *modules.Registry
	asked []map[string]any
	say   any
	err   error
	conf  any
}

func newMinion(t *testing.T) *minion {
	t.Helper()
	m := &minion{env: modulestest.Env(t), say: true, conf: map[string]any{}}
	m.env.Master = modulestest.Master(func(_ context.Context, load map[string]any) (any, error) {
		m.asked = append(m.asked, load)
		return m.say, m.err
	})
	m.r = modules.NewRegistry(Module, &modules.Module{Name: "x", Funcs: []modules.Def{
		{Name: "echo", Params: []modules.Param{{Name: "text"}, {Name: "more", Optional: true}}, Run: func(_ context.Context, c *modules.Call) (any, error) {
			return []any{c.Value("text"), c.Value("more")}, nil
		}}}}, &modules.Module{Name: "config", Funcs: []modules.Def{
		{Name: "merge", Params: []modules.Param{{Name: "value"}, {Name: "default"}}, Run: func(context.Context, *modules.Call) (any, error) {
			return m.conf, nil
		}}}})
	return m
}

func (m *minion) call(t *testing.T, fun string, kwargs map[string]any, args ...any) any {
	t.Helper()
	m.asked = nil
	res := m.r.Run(t.Context(), m.env, modules.Request{Fun: fun, Args: args, Kwargs: kwargs, Pub: map[string]any{"jid": "1"}})
	if res.Err != nil {
		t.Fatalf("%s: %v", fun, res.Err)
	}
	return res.Return
}

func (m *minion) expect(t *testing.T, want ...map[string]any) {
	t.Helper()
	if diff := cmp.Diff(want, m.asked); diff != "" {
		t.Error(diff)
	}
}

func TestSend(t *testing.T) {
	m := newMinion(t)
	if got := m.call(t, "mine.send", map[string]any{"mine_function": "x.echo", "allow_tgt": "G@a:b", "allow_tgt_type": "compound", "more": int64(1)}, "alias", "hello"); got != true {
		t.Errorf("answer %v", got)
	}
	m.expect(t, map[string]any{"cmd": "_mine", "id": "minion", "clear": false, "data": map[string]any{"alias": map[string]any{
		"__data__": []any{"hello", int64(1)}, "__saltmine_acl__": int64(1), "allow_tgt": "G@a:b", "allow_tgt_type": "compound"}}})
	if got := m.call(t, "mine.send", nil, "no.such"); got != false || m.asked != nil {
		t.Errorf("a function that is not there: %v, %v", got, m.asked)
	}
	m.err = errors.New("away")
	if res := m.r.Run(t.Context(), m.env, modules.Request{Fun: "mine.send", Args: []any{"x.echo", "a"}}); res.Err == nil {
		t.Errorf("without master: %v", res.Return)
	}
}

func TestUpdateAndValid(t *testing.T) {
	m := newMinion(t)
	if got := m.call(t, "mine.update", nil); got != nil || m.asked != nil {
		t.Errorf("nothing is configured: %v, %v", got, m.asked)
	}
	m.conf = map[string]any{"x.echo": []any{"a"}, "two": []any{map[string]any{"mine_function": "x.echo"}, "b", map[string]any{"more": "c"}},
		"no.such": []any{}, "bad": map[string]any{"mine_function": "x.echo"}, "three": map[string]any{"mine_function": "x.echo", "text": "d", "allow_tgt": "*"}}
	if got := m.call(t, "mine.update", map[string]any{"clear": true}); got != true {
		t.Errorf("answer %v", got)
	}
	m.expect(t, map[string]any{"cmd": "_mine", "id": "minion", "clear": true, "data": map[string]any{
		"x.echo": []any{"a", nil}, "two": []any{"b", "c"},
		"three": map[string]any{"__data__": []any{"d", nil}, "__saltmine_acl__": int64(1), "allow_tgt": "*"}}})
	want := map[string]any{"x.echo": []any{"a"}, "two": map[string]any{"x.echo": []any{"b", map[string]any{"more": "c"}}},
		"bad": map[string]any{"x.echo": []any{}}, "three": map[string]any{"x.echo": []any{map[string]any{"text": "d"}}}}
	if diff := cmp.Diff(want, m.call(t, "mine.valid", nil)); diff != "" {
		t.Error(diff)
	}
	m.call(t, "mine.update", map[string]any{"mine_functions": map[string]any{"x.echo": []any{"only"}}})
	m.expect(t, map[string]any{"cmd": "_mine", "id": "minion", "clear": false, "data": map[string]any{"x.echo": []any{"only", nil}}})
}

func TestMaster(t *testing.T) {
	m := newMinion(t)
	m.say = map[string]any{"minion": int64(1), "other": int64(2)}
	if diff := cmp.Diff(map[string]any{"other": int64(2)}, m.call(t, "mine.get", map[string]any{"exclude_minion": true}, "*", "x.echo")); diff != "" {
		t.Error(diff)
	}
	m.expect(t, map[string]any{"cmd": "_mine_get", "id": "minion", "tgt": "*", "fun": "x.echo", "tgt_type": "glob"})
	m.say = false
	if got := m.call(t, "mine.delete", nil, "x.echo"); got != false {
		t.Errorf("refused: %v", got)
	}
	m.expect(t, map[string]any{"cmd": "_mine_delete", "id": "minion", "fun": "x.echo"})
	m.say = true
	if got := m.call(t, "mine.flush", nil); got != true {
		t.Errorf("answer %v", got)
	}
	m.expect(t, map[string]any{"cmd": "_mine_flush", "id": "minion"})
}

func TestDocker(t *testing.T) {
	m := newMinion(t)
	address := func(ip string) any { return map[string]any{"inet": []any{map[string]any{"address": ip}}} }
	host := map[string]any{"interfaces": map[string]any{"eth0": address("192.0.2.1"), "lo": address("127.0.0.1"), "eth1": map[string]any{}}}
	port := func(ip string, private, public int64) any {
		return map[string]any{"IP": ip, "PrivatePort": private, "PublicPort": public}
	}
	m.say = map[string]any{"h1": map[string]any{"host": host,
		"a": map[string]any{"Image": "web", "Info": map[string]any{"Id": "abc"}, "Ports": []any{port("0.0.0.0", 80, 8080), port("192.0.2.9", 443, 8443), map[string]any{"PrivatePort": int64(1)}}},
		"b": map[string]any{"Image": "db", "Info": map[string]any{"Id": "def"}}}}
	want := map[string]any{"db": map[string]any{}, "web": map[string]any{"ipv4": map[any]any{
		int64(80): []any{"192.0.2.1:8080"}, int64(443): []any{"192.0.2.9:8443"}}}}
	if diff := cmp.Diff(want, m.call(t, "mine.get_docker", map[string]any{"cidrs": "192.0.2.0/24"})); diff != "" {
		t.Error(diff)
	}
	want["web"] = map[string]any{"ipv4": map[any]any{
		int64(80): []any{[]any{"127.0.0.1:8080", "abc"}}, int64(443): []any{[]any{"192.0.2.9:8443", "abc"}}}}
	m.say.(map[string]any)["h1"].(map[string]any)["host"] = host
	if diff := cmp.Diff(want, m.call(t, "mine.get_docker", map[string]any{"interfaces": []any{"lo", "nosuch"}, "with_container_id": true})); diff != "" {
		t.Error(diff)
	}
}

// TestFailuresAreLogged: in stock's words, with the cause beside.
func TestFailuresAreLogged(t *testing.T) {
	m := newMinion(t)
	var log strings.Builder
	m.env.Log = slog.New(slog.NewTextHandler(&log, nil))
	m.conf = map[string]any{"x.echo": []any{}, "x.nosuch": []any{}}
	m.call(t, "mine.update", nil)
	if got := m.call(t, "mine.send", map[string]any{"mine_function": "x.echo"}, "short"); got != false {
		t.Errorf("mine.send returns %v", got)
	}
	for _, want := range []string{
		`msg="Function x.nosuch in mine_functions not available"`,
		`msg="Function x.echo in mine.update failed to execute" err="echo() missing 1`,
		`msg="Function x.echo in mine.send failed to execute" err="echo() missing 1`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %s:\n%s", want, &log)
		}
	}
}
