package tools

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master/audit"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/targets"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
)

type object = map[string]any

// house is a master around a Server, whose minions return true as soon as a job is published.
type house struct {
	*Server
	t         *testing.T
	clock     protocol.JIDClock
	log       testlog.Buffer
	published []Job
	called    []Call
}

func (h *house) PublishFor(ctx context.Context, j Job) (jid string, minions, missing []string,
	err error) {
	tgtType, tgt, err := h.Targets.OnWire(j.TgtType, j.Tgt)
	if err != nil {
		return "", nil, nil, err
	}
	minions, missing, err = h.Targets.Expected(tgtType, tgt, j.Delimiter)
	if err == nil && len(minions) == 0 {
		err = &targets.NoMinionsError{Tgt: j.Tgt}
	}
	if err != nil {
		return "", nil, nil, err
	}
	h.published = append(h.published, j)
	jid = string(h.clock.Next(time.Now()))
	if err := h.store.SaveJob(ctx, store.Job{JID: jid, Fun: j.Fun, Arg: j.Arg, Tgt: tgt,
		TgtType: tgtType,
		User:    j.User, Minions: minions, Load: j.Load}); err != nil {
		return "", nil, nil, err
	}
	for _, id := range minions {
		r := store.Return{JID: jid, ID: id, Load: object{"jid": jid, "id": id, "return": true}}
		if _, err := h.store.SaveReturn(ctx, r); err != nil {
			return "", nil, nil, err
		}
	}
	return jid, minions, missing, nil
}

func (h *house) CallFor(_ context.Context, c Call) (CallResult, error) {
	h.called = append(h.called, c)
	return CallResult{JID: "1", Tag: "salt/run/1", Data: object{"return": "done"}}, nil
}

// open returns a Server in its own directory with some accepted minions, each with its id as a grain.
func open(t *testing.T, o Options, minions ...string) *house {
	t.Helper()
	told := make(map[string]*cache.Data)
	for _, id := range minions {
		told[id] = &cache.Data{Grains: object{"role": id, "os": object{"family": "Debian"}}}
	}
	ks, c := requesttest.Told(t, told)
	h := &house{t: t}
	o.Dir, o.HashType, o.Publisher, o.Caller = t.TempDir(), "sha256", h, h
	o.Log = slog.New(slog.NewTextHandler(&h.log, nil))
	o.Targets, o.Store, o.Bus = &targets.Finder{Keys: ks, Cache: c}, store.NewMemory(),
		events.New(nil)
	o.Account = audit.NewAccount(nil, o.Log)
	var err error
	if h.Server, err = Open(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// askFrom sends a request from an address, and returns the answer.
func (h *house) askFrom(peer string, load object) any {
	h.t.Helper()
	cmd, _ := load["cmd"].(string)
	return h.Serve(h.t.Context(), peer, cmd, load, func() object { return load })
}

// ask sends a request from this host.
func (h *house) ask(load object) object {
	h.t.Helper()
	got, _ := h.askFrom("127.0.0.1:99", load).(object)
	return got
}

// outcome is the name of the error of an answer, or "published", "called" or "answered".
func outcome(got object) string {
	e, _ := got["error"].(object)
	load, _ := got["load"].(object)
	switch name, _ := e["name"].(string); {
	case name != "":
		return name
	case load["jid"] != nil:
		return "published"
	case got["tag"] != nil:
		return "called"
	}
	return "answered"
}

// TestExternalAuthentication: tools send a name and a password, or a token, and may do what external_auth allows,
// in every kind of request.
func TestExternalAuthentication(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(users, []byte("alice:secret\nbob:secret\nred:secret\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	all := []any{".*", "@runner", "@wheel"}
	auth, err := eauth.New(eauth.Options{
		Config: object{"file": object{"^filename": users, "alice": all, "red": all,
			"bob": []any{object{"a": []any{`test\..*`}}, "@jobs"}}},
		Tenant: func(t eauth.Token) (string, error) {
			if t.Name == "red" {
				return "red", nil
			}
			return "", nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, Options{Auth: auth}, "a", "b")
	creds := func(user, password string, more object) object {
		out := object{"eauth": "file", "username": user, "password": password}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	publish := func(kwargs object, fun any, tgt string) object {
		t.Helper()
		return h.ask(object{"cmd": "publish", "fun": fun, "arg": []any{}, "tgt": tgt,
			"tgt_type": "glob", "ret": "",
			"jid": "", "user": "root", "key": "", "kwargs": kwargs})
	}
	for _, c := range []struct {
		name   string
		kwargs object
		fun    any
		tgt    string
		want   string
	}{
		{"alice", creds("alice", "secret", nil), "cmd.run", "*", "published"},
		{"wrong password", creds("alice", "x", nil), "test.ping", "*", "AuthenticationError"},
		{"unknown", creds("eve", "secret", nil), "test.ping", "*", "AuthenticationError"},
		{"bob on his minion", creds("bob", "secret", nil), "test.ping", "a", "published"},
		{"bob on others", creds("bob", "secret", nil), "test.ping", "*", "AuthorizationError"},
		{"bob and other functions", creds("bob", "secret", nil), "cmd.run", "a",
			"AuthorizationError"},
		{"bob hides a function", creds("bob", "secret", nil), []any{"test.ping", "cmd.run"}, "a",
			"AuthorizationError"},
		{"one of a tenant", creds("red", "secret", nil), "test.ping", "a", "AuthenticationError"},
		{"no token", object{"token": "00"}, "test.ping", "*", "AuthenticationError"},
		{"nothing", object{}, "test.ping", "*", "AuthenticationError"},
	} {
		if got := outcome(publish(c.kwargs, c.fun, c.tgt)); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	for _, j := range h.published {
		kwargs, _ := j.Load["kwargs"].(object)
		if j.Load["key"] != nil || len(kwargs) > 0 {
			t.Errorf("a secret is in what is stored: %v", j.Load)
		}
	}
	jids := make(map[string]string)
	for _, user := range []string{"alice", "bob"} {
		load, _ := publish(creds(user, "secret", nil), "test.ping", "a")["load"].(object)
		jids[user], _ = load["jid"].(string)
	}
	for _, c := range []struct{ user, password, of, want string }{
		{"alice", "secret", "alice", "true"}, {"bob", "secret", "bob", "true"},
		{"bob", "secret", "alice", "AuthorizationError"},
		{"alice", "secret", "bob", "AuthorizationError"},
		{"alice", "x", "alice", "AuthenticationError"},
		{"red", "secret", "alice", "AuthenticationError"},
		{"alice", "secret", "nobody", "AuthorizationError"},
	} {
		v := h.ask(object{"cmd": protocol.ReturnsCmd, "jid": jids[c.of], "ids": []any{"a", "b"},
			"kwargs": creds(c.user, c.password, nil)})
		got := outcome(v)
		if ret, _ := v["returns"].(object); len(ret) == 1 { // a has returned, and b was not asked
			one, _ := ret["a"].(object)
			got = fmt.Sprint(one["return"])
		}
		if got != c.want {
			t.Errorf("%s asks for the returns of the job of %s: %s, not %s", c.user, c.of, got,
				c.want)
		}
	}
	tok := h.ask(creds("bob", "secret", object{"cmd": "mk_token"}))
	id, _ := tok["token"].(string)
	if len(id) != 64 || tok["name"] != "bob" || tok["eauth"] != "file" {
		t.Fatal(tok)
	}
	if got := outcome(publish(object{"token": id}, "test.ping", "a")); got != "published" {
		t.Error(got)
	}
	if diff := cmp.Diff(tok, h.ask(object{"cmd": "get_token", "token": id})); diff != "" {
		t.Error(diff)
	}
	if v := h.askFrom("127.0.0.1:99", creds("bob", "x", object{"cmd": "mk_token"})); v != "" {
		t.Error(v)
	}
	red := h.ask(creds("red", "secret", object{"cmd": "mk_token"}))
	if got := outcome(publish(object{"token": red["token"]}, "test.ping",
		"a")); got != "AuthenticationError" || red["name"] != "red" {
		t.Error("the token of one who is of a tenant:", got)
	}
	accept := object{"cmd": "wheel", "fun": "key.accept", "match": "*"}
	for _, c := range []struct {
		load object
		want string
	}{
		{creds("bob", "secret", object{"cmd": "runner", "fun": "jobs.list_jobs",
			"kwarg": object{"arg": []any{}, "kwarg": object{"x": int64(1)}}}), "called"},
		{creds("bob", "secret", object{"cmd": "runner", "fun": "manage.up"}),
			"EauthAuthenticationError"},
		{creds("bob", "secret", accept), "EauthAuthenticationError"},
		{creds("alice", "secret", accept), "called"},
		{creds("alice", "secret", object{"cmd": "wheel", "client": "wheel", "fun": "key.accept",
			"match": "*"}), "called"},
		{creds("red", "secret", accept), "EauthAuthenticationError"},
		{accept, "UserAuthenticationError"},
		{object{"cmd": "wheel", "fun": "key.accept", "match": "*", "user": "root", "key": "x"},
			"UserAuthenticationError"},
		{object{"cmd": "runner", "fun": "jobs.active", "token": id}, "called"},
		{object{"cmd": "runner", "fun": "jobs.active", "token": "x"}, "TokenAuthenticationError"},
	} {
		if got := outcome(h.ask(c.load)); got != c.want {
			t.Errorf("%v: %v, not %v", c.load, got, c.want)
		}
	}
	var called []string
	for _, c := range h.called {
		called = append(called, fmt.Sprintf("%s.%s %v %v by %s", c.Kind, c.Fun, c.Args, c.Kwargs,
			c.User))
	}
	want := []string{"runner.jobs.list_jobs [] map[x:1] by bob",
		"wheel.key.accept [] map[match:*] by alice",
		"wheel.key.accept [] map[match:*] by alice", "runner.jobs.active [] map[] by bob"}
	if diff := cmp.Diff(want, called); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(h.log.String(), "secret") {
		t.Errorf("a password is in the log: %s", &h.log)
	}
}

// TestNarrowGrants: publisher_acl restricts users to functions, minions and arguments, and sudo_acl restricts users
// of sudo. What is denied is denied to all users.
func TestNarrowGrants(t *testing.T) {
	h := open(t, Options{SudoACL: true,
		ACL: map[string][]any{
			"fred": {object{"web*": []any{"test.*",
				object{"state.apply": []any{object{"args": []any{"nginx|haproxy"},
					"kwargs": object{"test": "True"}}}}}}},
			"fre.*": {"sys.doc", "@jobs"},
			"wilma": {},
		},
		DeniedUsers: []string{"mallory"}, DeniedFunctions: []string{"cmd.*", "system.reboot"},
	}, "web1", "db1")
	key := func(user string) string {
		b, err := os.ReadFile(filepath.Join(h.Dir, "."+user+"_key"))
		if err != nil || string(b) != h.Key(user) {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct {
		user, key string
		fun       any
		tgt       string
		arg       []any
		want      string
	}{
		{"fred", "fred", "test.ping", "web1", nil, "published"},
		{"fred", "fred", "test.ping", "web*", nil, "published"},
		{"fred", "fred", "test.ping", "*", nil, "AuthorizationError"},
		{"fred", "fred", "test.ping", "db1", nil, "AuthorizationError"},
		{"fred", "fred", "sys.doc", "*", nil, "published"},
		{"fred", "fred", "sys.docs", "*", nil, "AuthorizationError"},
		{"fred", "fred", "state.apply", "web1",
			[]any{"nginx", object{"test": true, "__kwarg__": true}}, "published"},
		{"fred", "fred", "state.apply", "web1", []any{"nginx"}, "AuthorizationError"},
		{"fred", "fred", "state.apply", "web1",
			[]any{"mysql", object{"test": true, "__kwarg__": true}}, "AuthorizationError"},
		{"fred", "fred", []any{"test.ping", "state.apply"}, "web1", []any{[]any{}, []any{"mysql"}},
			"AuthorizationError"},
		{"fred", "fred", "saltutil.find_job", "*", []any{"20260101000000000001"}, "published"},
		{"sudo_fred", "root", "test.ping", "web1", nil, "published"},
		{"sudo_fred", "root", "test.ping", "db1", nil, "AuthorizationError"},
		{"sudo_barney", "root", "test.ping", "web1", nil, "AuthenticationError"},
		{"sudo_fred", "fred", "test.ping", "web1", nil, "AuthenticationError"},
		{"wilma", "wilma", "test.ping", "web1", nil, "AuthenticationError"},
		{"wilma", "fred", "test.ping", "web1", nil, "AuthenticationError"},
		{"root", "root", "test.ping", "*", nil, "published"},
		{"root", "root", "system.reboot", "*", nil, "AuthorizationError"},
		{"root", "root", []any{"test.ping", "cmd.run"}, "*", []any{[]any{}, []any{"id"}},
			"AuthorizationError"},
		{"mallory", "root", "test.ping", "*", nil, "AuthorizationError"},
	} {
		arg := c.arg
		if arg == nil {
			arg = []any{}
		}
		got := h.ask(object{"cmd": "publish", "fun": c.fun, "arg": arg, "tgt": c.tgt,
			"tgt_type": "glob", "ret": "",
			"jid": "", "key": key(c.key), "user": c.user})
		if outcome(got) != c.want {
			t.Errorf("%s with the key of %s, %v %v on %s: %v", c.user, c.key, c.fun, c.arg, c.tgt,
				got)
		}
	}
	// A target that minions match by their own data reaches those that the rules were checked for, whatever
	// delimiter it uses.
	for tgt, may := range map[string]bool{"role|web1": true, "os|family|Debian": false,
		"role:web1": true} {
		h.published = nil
		got := h.ask(object{"cmd": "publish", "fun": "test.ping", "arg": []any{}, "tgt": tgt,
			"tgt_type": "grain",
			"ret":      "", "jid": "", "key": key("fred"), "user": "fred",
			"kwargs": object{"delimiter": strings.Trim(tgt, "abcdefghijklmnopqrstuvwxyzD1")[:1]}})
		if (outcome(got) == "published") != may || len(h.published) > 0 != may {
			t.Errorf("%s: %v", tgt, got)
		}
		for _, j := range h.published {
			if j.TgtType != "list" || !cmp.Equal([]any{"web1"}, j.Tgt) {
				t.Errorf("%s was published as %s %v", tgt, j.TgtType, j.Tgt)
			}
		}
	}
	for fun, want := range map[string]string{"jobs.active": "called",
		"manage.up": "UserAuthenticationError"} {
		h.called = nil
		got := h.ask(object{"cmd": "runner", "fun": fun, "kwarg": object{}, "key": key("fred"),
			"user": "fred"})
		if outcome(got) != want {
			t.Errorf("%s: %v", fun, got)
		}
		for _, c := range h.called {
			if c.User != "fred" || c.Fun != fun {
				t.Errorf("%s is called by %s", c.Fun, c.User)
			}
		}
	}
}

// TestToolsOfOtherHosts: a request of a tool counts from this host only, unless AnyHost is set.
func TestToolsOfOtherHosts(t *testing.T) {
	for _, anyHost := range []bool{false, true} {
		h := open(t, Options{AnyHost: anyHost}, "m")
		for peer, want := range map[string]bool{"127.0.0.1:99": true, "[::1]:99": true,
			"192.0.2.7:99": anyHost} {
			got := h.askFrom(peer, object{"cmd": "publish", "fun": "test.ping", "arg": []any{},
				"tgt":      "*",
				"tgt_type": "glob", "ret": "", "jid": "", "user": "root", "key": h.Key("root")})
			if published := outcome(got.(object)) == "published"; published != want {
				t.Errorf("AnyHost %v: publish from %s: %v", anyHost, peer, got)
			}
		}
		for _, cmd := range []string{"runner", "wheel", "mk_token", "get_token",
			protocol.ReturnsCmd} {
			got := h.askFrom("192.0.2.7:99", object{"cmd": cmd, "fun": "test.arg", "token": "x"})
			if !anyHost && !cmp.Equal(got, any(object{})) {
				t.Errorf("%s from another host: %v", cmd, got)
			}
		}
	}
}
