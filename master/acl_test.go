package master_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
)

// TestNarrowGrants: publisher_acl binds users to functions, minions and arguments, sudo_acl those who come through sudo, and what is denied
// is denied to everybody.
func TestNarrowGrants(t *testing.T) {
	cache := t.TempDir()
	called := ""
	r := serve(t, master.Options{AutoAccept: true, CacheDir: cache, Local: &master.Local{SockDir: shortDir(t), SudoACL: true,
		ACL: map[string][]any{
			"fred":  {object{"web*": []any{"test.*", object{"state.apply": []any{object{"args": []any{"nginx|haproxy"}, "kwargs": object{"test": "True"}}}}}}},
			"fre.*": {"sys.doc", "@jobs"},
			"wilma": {},
		},
		DeniedUsers: []string{"mallory"}, DeniedFunctions: []string{"cmd.*", "system.reboot"},
		Call: func(_ context.Context, c master.MasterCall) (master.MasterResult, error) {
			called = c.User + " " + c.Fun
			return master.MasterResult{JID: "20260101000000000001", Tag: "salt/run/20260101000000000001"}, nil
		}}})
	m := r.accepted("web1", 1).subscribe()
	db := r.accepted("db1", 2)
	key := func(user string) string {
		b, err := os.ReadFile(filepath.Join(cache, "."+user+"_key"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ask := func(load object) object {
		v, err := m.sendValue(object{"enc": "clear", "load": load, "version": 3})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := v.(object)
		return got
	}
	for _, c := range []struct {
		user, key string
		fun       any
		tgt       string
		arg       []any
		want      string // "" is published
	}{
		{"fred", "fred", "test.ping", "web1", nil, ""},
		{"fred", "fred", "test.ping", "web*", nil, ""},
		{"fred", "fred", "test.ping", "*", nil, "AuthorizationError"},
		{"fred", "fred", "test.ping", "db1", nil, "AuthorizationError"},
		{"fred", "fred", "sys.doc", "*", nil, ""},
		{"fred", "fred", "sys.docs", "*", nil, "AuthorizationError"},
		{"fred", "fred", "state.apply", "web1", []any{"nginx", object{"test": true, "__kwarg__": true}}, ""},
		{"fred", "fred", "state.apply", "web1", []any{"nginx"}, "AuthorizationError"},
		{"fred", "fred", "state.apply", "web1", []any{"mysql", object{"test": true, "__kwarg__": true}}, "AuthorizationError"},
		{"fred", "fred", []any{"test.ping", "state.apply"}, "web1", []any{[]any{}, []any{"mysql"}}, "AuthorizationError"},
		{"fred", "fred", "saltutil.find_job", "*", []any{"20260101000000000001"}, ""},
		{"sudo_fred", "root", "test.ping", "web1", nil, ""},
		{"sudo_fred", "root", "test.ping", "db1", nil, "AuthorizationError"},
		{"sudo_barney", "root", "test.ping", "web1", nil, "AuthenticationError"},
		{"sudo_fred", "fred", "test.ping", "web1", nil, "AuthenticationError"},
		{"wilma", "wilma", "test.ping", "web1", nil, "AuthenticationError"},
		{"wilma", "fred", "test.ping", "web1", nil, "AuthenticationError"},
		{"root", "root", "test.ping", "*", nil, ""},
		{"root", "root", "system.reboot", "*", nil, "AuthorizationError"},
		{"root", "root", []any{"test.ping", "cmd.run"}, "*", []any{[]any{}, []any{"id"}}, "AuthorizationError"},
		{"mallory", "root", "test.ping", "*", nil, "AuthorizationError"},
	} {
		arg := c.arg
		if arg == nil {
			arg = []any{}
		}
		got := ask(object{"cmd": "publish", "fun": c.fun, "arg": arg, "tgt": c.tgt, "tgt_type": "glob", "ret": "", "jid": "", "key": key(c.key), "user": c.user})
		load, _ := got["load"].(object)
		jid, _ := load["jid"].(string)
		refusal, _ := got["error"].(object)
		name, _ := refusal["name"].(string)
		if name != c.want || protocol.ValidJID(jid) != (c.want == "") {
			t.Errorf("%s with the key of %s, %v %v on %s: %v", c.user, c.key, c.fun, c.arg, c.tgt, got)
		}
	}
	// What minions judge by themselves goes to those for whom the rules were asked, whatever separates its levels.
	for _, x := range []*minion{m, db} {
		if _, err := x.pillar(object{"grains": object{"os": object{"family": "Debian"}, "role": x.id}}); err != nil {
			t.Fatal(err)
		}
	}
	for tgt, may := range map[string]bool{"role|web1": true, "os|family|Debian": false, "role:web1": true} {
		load := object{"cmd": "publish", "fun": "test.ping", "arg": []any{}, "tgt": tgt, "tgt_type": "grain", "ret": "", "jid": "", "key": key("fred"), "user": "fred",
			"kwargs": object{"delimiter": strings.Trim(tgt, "abcdefghijklmnopqrstuvwxyzD1")[:1]}}
		got, _ := ask(load)["load"].(object)
		jid, _ := got["jid"].(string)
		if protocol.ValidJID(jid) != may {
			t.Errorf("%s: %v", tgt, got)
		}
		if !may {
			continue
		}
		if j, err := r.Store().Job(within(t), jid); err != nil || j.TgtType != "list" || cmp.Diff([]any{"web1"}, j.Tgt) != "" {
			t.Errorf("%s was published as %s %v: %v", tgt, j.TgtType, j.Tgt, err)
		}
	}
	for fun, may := range map[string]bool{"jobs.active": true, "manage.up": false} {
		called = ""
		got := ask(object{"cmd": "runner", "fun": fun, "kwarg": object{}, "key": key("fred"), "user": "fred"})
		if (got["tag"] != nil) != may || (called == "fred "+fun) != may {
			t.Errorf("%s: %v", fun, got)
		}
	}
}

// TestDeniedToEverybody: what the blacklist names is published by nobody: not by the program (runners and the reactor publish so), as an order,
// or by minions with a grant. The master's own questions go on.
func TestDeniedToEverybody(t *testing.T) {
	r := serve(t, master.Options{AutoAccept: true, CacheDir: t.TempDir(), Peer: map[string][]any{".*": {".*"}},
		Local: &master.Local{SockDir: shortDir(t), DeniedUsers: []string{"mallory"}, DeniedFunctions: []string{"cmd.*", `system\.reboot`, "saltutil.*", "test.ping"}}})
	x := r.accepted("x", 1).subscribe()
	for _, c := range []struct {
		job    master.Job
		denied bool
	}{
		{master.Job{Fun: "cmd.run", Args: []any{"id"}}, true}, {master.Job{Fun: "system.reboot", User: "root"}, true}, {master.Job{Fun: "system.reboots"}, false},
		{master.Job{Steps: []master.Step{{Fun: "test.echo", Args: []any{"a"}}, {Fun: "cmd.run", Args: []any{"id"}}}}, true},
		{master.Job{Fun: "test.echo", Args: []any{"a"}, User: "mallory"}, true}, {master.Job{Fun: "test.echo", Args: []any{"a"}, User: "root"}, false},
	} {
		c.job.Tgt = "x"
		_, err := r.Publish(within(t), c.job)
		if errors.Is(err, master.ErrDenied) != c.denied || !c.denied && err != nil {
			t.Errorf("publish %+v: %v", c.job, err)
		}
		run, err := r.Submit(within(t), c.job)
		if errors.Is(err, master.ErrDenied) != c.denied || !c.denied && err != nil {
			t.Errorf("submit %+v: %v", c.job, err)
		}
		if err == nil {
			run.Close()
		}
		_, err = r.PlaceOrder(within(t), master.Order{Job: c.job})
		if errors.Is(err, master.ErrDenied) != c.denied || !c.denied && err != nil {
			t.Errorf("cast %+v: %v", c.job, err)
		}
	}
	for fun, may := range map[string]bool{"test.echo": true, "cmd.run": false, "test.echo,cmd.run": false, "system.reboot": false} {
		for _, cmd := range []string{"minion_pub", "minion_publish"} {
			if cmd == "minion_publish" && may {
				continue // it would wait for answers
			}
			v, err := x.call(object{"cmd": cmd, "id": "x", "fun": fun, "arg": []any{"a"}, "tgt": "x", "tgt_type": "glob", "ret": ""})
			got, _ := v.(object)
			jid, _ := got["jid"].(string)
			if err != nil || protocol.ValidJID(jid) != may || !may && len(got) > 0 {
				t.Errorf("%s %s: %v %v", cmd, fun, v, err)
			}
		}
	}
	if err := r.Rotate(within(t)); err != nil {
		t.Error(err)
	}
}
