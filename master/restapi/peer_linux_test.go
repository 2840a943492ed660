package restapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi"
)

// caller is a client of a unix socket that runs as some user.
type caller struct {
	t      testing.TB
	client *http.Client
}

// as returns a client that connects as a user with these groups, the first of which is the effective one.
func as(t testing.TB, socket string, uid int, gids ...uint32) caller {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if os.Geteuid() == uid && len(gids) == 0 {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
		var c net.Conn
		err := error(nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never unlock: the thread ends with the goroutine, and its identity with it
			_, _, e1 := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(gids)), uintptr(unsafe.Pointer(&gids[0])), 0)
			_, _, e2 := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gids[0]), uintptr(gids[0]), uintptr(gids[0]))
			_, _, e3 := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
			if e1 != 0 || e2 != 0 || e3 != 0 {
				err = fmt.Errorf("cannot become %d: %v %v %v", uid, e1, e2, e3)
				return
			}
			var fd int
			if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
				return
			}
			f := os.NewFile(uintptr(fd), socket)
			defer f.Close()
			if err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err == nil {
				c, err = net.FileConn(f)
			}
		}()
		<-done
		return c, err
	}
	tr := &http.Transport{DialContext: dial}
	t.Cleanup(tr.CloseIdleConnections)
	return caller{t, &http.Client{Transport: tr, Timeout: patience}}
}

// do sends a request with headers and returns its status and its answer.
func (c caller) do(method, path, body string, headers ...string) (int, map[string]any) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, "http://x"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	out := map[string]any{}
	if len(b) > 0 && b[0] == '{' {
		if err := json.Unmarshal(b, &out); err != nil {
			c.t.Fatalf("%s: %v", b, err)
		}
	}
	return resp.StatusCode, out
}

// peerSite returns a site on a unix socket that any user may connect to, with rules for peers.
func peerSite(t testing.TB, rules map[string]any, change func(*restapi.Options, *eauth.Options)) (*site, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "peer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	users := filepath.Join(dir, "users")
	if err := os.WriteFile(users, []byte("alice:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSiteOf(t, master.Options{}, func(o *restapi.Options) {
		eo := eauth.Options{Match: o.Master.Match, Config: map[string]any{"peer": rules,
			"file": map[string]any{"^filename": users, "alice": []any{"@runner"}}}}
		if change != nil {
			change(o, &eo)
		}
		if o.Auth, err = eauth.New(eo); err != nil {
			t.Fatal(err)
		}
		o.LoginRate = -1
	})
	socket := filepath.Join(dir, "api.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o755, socket: 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	server := s.rest.HTTP()
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(restapi.Limit(ln, 64, 16)) }()
	t.Cleanup(func() { server.Close(); <-done })
	return s, socket
}

const (
	echo    = `{"client": "runner", "fun": "test.arg", "arg": ["x"]}`
	listing = `{"client": "wheel", "fun": "key.list_all"}`
	ident   = `{"client": "runner", "fun": "test.arg"`
)

// TestPeer: a user of the unix socket needs no log-in. Rules name users by id or name, and groups; no other caller
// is allowed anything.
func TestPeer(t *testing.T) {
	prereq.Root(t)
	rules := map[string]any{
		"root":  []any{"@runner", "@wheel"},
		"4101":  []any{"@wheel"},
		"4200%": []any{"@runner"},
		"4201%": []any{map[string]any{"@runner": []any{`test\.arg`}}},
	}
	s, socket := peerSite(t, rules, nil)
	for _, c := range []struct {
		name        string
		uid         int
		gids        []uint32
		body        string
		want        int
		user, eauth string
	}{
		{"a user by name", 0, nil, echo, 200, "root", "peer"},
		{"a user by id", 4101, []uint32{4999}, listing, 200, "4101", "peer"},
		{"a user by id beyond the rules", 4101, []uint32{4999}, echo, 401, "", ""},
		{"an effective group", 4102, []uint32{4200}, echo, 200, "4102", "peer"},
		{"a supplementary group", 4103, []uint32{4999, 4100, 4200}, echo, 200, "4103", "peer"},
		{"one of many groups", 4104, append(many(4300, 100), 4201), echo, 200, "4104", "peer"},
		{"another function of the rule", 4104, []uint32{4201}, `{"client": "runner", "fun": "jobs.list_jobs"}`, 401, "", ""},
		{"a group's id as a user's", 4200, []uint32{4999}, echo, 401, "", ""},
		{"a user's id as a group's", 4105, []uint32{4101}, listing, 401, "", ""},
		{"a user without a rule", 4106, []uint32{4999}, echo, 401, "", ""},
		{"a user of another namespace", 65534, []uint32{4200}, echo, 401, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			who := as(t, socket, c.uid, c.gids...)
			for _, path := range []string{"/", "/run"} {
				code, out := who.do("POST", path, c.body)
				if code != c.want {
					t.Fatalf("POST %s: %d %v", path, code, out)
				}
				if c.want != 200 {
					continue
				}
				line := last(t, s)
				got := []any{line["user"], line["eauth"], line["from"], line["outcome"]}
				want := []any{c.user, c.eauth, "uid " + strconv.Itoa(c.uid), "allowed"}
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
			}
		})
	}
	t.Run("no peer over TCP", func(t *testing.T) {
		s.token = ""
		for _, path := range []string{"/", "/run", "/minions"} {
			method, body := "POST", echo
			if path == "/minions" {
				method, body = "GET", ""
			}
			if code, _, _ := s.do(method, path, "application/json", body); code != 401 {
				t.Error(path, code)
			}
		}
	})
	t.Run("health without rules", func(t *testing.T) {
		for _, path := range []string{"/healthz", "/readyz"} {
			if code, _ := as(t, socket, 4106, 4999).do("GET", path, ""); code != 200 {
				t.Error(path, code)
			}
		}
	})
}

// last is the newest line of the audit log.
func last(t testing.TB, s *site) map[string]any {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(s.account.String()), "\n")
	var out map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func many(first uint32, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = first + uint32(i)
	}
	return out
}

// TestPeerAndTokens: a token or credentials count before the peer, and a wrong one is not replaced by it; a proxy is not the caller.
func TestPeerAndTokens(t *testing.T) {
	me := strconv.Itoa(os.Geteuid())
	s, socket := peerSite(t, map[string]any{me: []any{"@wheel", "@runner"}}, nil)
	who := as(t, socket, os.Geteuid())
	code, out := who.do("POST", "/login", `{"username": "alice", "password": "secret", "eauth": "file"}`)
	if code != 200 {
		t.Fatal(code, out)
	}
	alice := out["return"].([]any)[0].(map[string]any)["token"].(string)
	for _, c := range []struct {
		name, path, body string
		headers          []string
		want             int
	}{
		{"the peer", "/", listing, nil, 200},
		{"alice's token", "/", listing, []string{"X-Auth-Token", alice}, 401},
		{"alice's token, what alice may", "/", echo, []string{"X-Auth-Token", alice}, 200},
		{"a wrong token", "/", listing, []string{"X-Auth-Token", "00"}, 401},
		{"a cookie", "/", listing, []string{"Cookie", "session_id=" + alice}, 401},
		{"alice's token in the command", "/", `{"client": "wheel", "fun": "key.list_all", "token": "` + alice + `"}`, nil, 401},
		{"alice's password in the command", "/", ident + `, "username": "alice", "password": "secret", "eauth": "file"}`, nil, 200},
		{"a wrong password in the command", "/run", ident + `, "username": "alice", "password": "x", "eauth": "file"}`, nil, 401},
		{"through a proxy", "/", listing, []string{"X-Forwarded-For", "192.0.2.1"}, 401},
		{"from a browser", "/run", listing, []string{"Origin", "https://x.example"}, 401},
		{"another's name", "/login", `{"username": "alice", "password": "x", "eauth": "peer"}`, nil, 401},
	} {
		if code, out := who.do("POST", c.path, c.body, c.headers...); code != c.want {
			t.Errorf("%s: %d %v", c.name, code, out)
		}
	}
	if code, _ := who.do("POST", "/", listing); code != 200 {
		t.Fatal(code)
	}
	name := last(t, s)["user"]
	code, out = who.do("POST", "/login", fmt.Sprintf(`{"username": %q, "password": "", "eauth": "peer"}`, name))
	if code != 200 {
		t.Fatal(code, out)
	}
	session := out["return"].([]any)[0].(map[string]any)
	if d := cmp.Diff([]any{"@runner", "@wheel"}, session["perms"]); d != "" || session["eauth"] != "peer" {
		t.Error(d, session)
	}
	// The interface like Salt's, the one of /v1, and event streams.
	for path, want := range map[string]int{"/keys": 200, "/v1/minions": 200, "/v1/jobs/none": 404, "/stats": 200} {
		if code, out := who.do("GET", path, ""); code != want {
			t.Errorf("%s: %d %v", path, code, out)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", "http://x/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := who.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	s.master.Events().Publish("peer/test", map[string]any{})
	text := ""
	for buf := make([]byte, 4096); !strings.Contains(text, "tag: peer/test"); {
		n, err := resp.Body.Read(buf)
		text += string(buf[:n])
		if err != nil {
			t.Fatalf("%v: %q", err, text)
		}
	}
}

// TestPeerLimits: requests are counted by user id, tenants and api_acl hold for peers as for others.
func TestPeerLimits(t *testing.T) {
	prereq.Root(t)
	rules := map[string]any{"4101": []any{"@wheel", "@runner", ".*"}, "4102": []any{"@wheel", ".*"}, "4103": []any{"@wheel"}, "4104": []any{"@wheel"}}
	_, socket := peerSite(t, rules, func(o *restapi.Options, eo *eauth.Options) {
		tenant, err := eauth.TenantRules(map[string]any{"4101": "", "4102": "blue", "4104": "", "alice": ""})
		if err != nil {
			t.Fatal(err)
		}
		eo.Tenant = tenant
		o.RequestRate, o.RequestBurst = 0.001, 3
		o.Addresses.Users = map[string][]string{"4101": {"*"}, "4102": {"*"}, "4103": {"*"}, "4104": {"127.0.0.1"}, "alice": {"*"}}
	})
	if code, _ := as(t, socket, 4102, 4999).do("GET", "/keys", ""); code != 401 {
		t.Error("a tenant's user sees all keys", code)
	}
	if code, out := as(t, socket, 4102, 4999).do("GET", "/v1/minions", ""); code != 200 {
		t.Error("a tenant's user does not see its own minions", code, out)
	}
	for _, uid := range []int{4103, 4104} {
		if code, _ := as(t, socket, uid, 4999).do("GET", "/keys", ""); code != 401 {
			t.Error(uid, code)
		}
	}
	var codes []int
	for range 4 { // each from a connection of its own
		code, _ := as(t, socket, 4101, 4999).do("GET", "/keys", "")
		codes = append(codes, code)
	}
	if d := cmp.Diff([]int{200, 200, 200, 429}, codes); d != "" {
		t.Error(d)
	}
}
