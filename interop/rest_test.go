//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/freeport"
)

// TestRestClients uses the HTTP interface of brine's master with clients for Salt's: the pepper command of the
// package index, over TCP, and a service that has only Python's standard library, over a unix socket.
func TestRestClients(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"tcp", "unix"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			port := freeport.Port(t)
			s := newSite(t, "zeromq", "")
			listen := fmt.Sprintf("port: %d, host: 127.0.0.1, disable_ssl: true", port)
			if way == "unix" {
				listen = "socket: " + s.dir + "/api.sock"
			}
			write(t, s.dir+"/users", "alice:secret\n")
			text, err := os.ReadFile(s.config())
			if err != nil {
				t.Fatal(err)
			}
			write(t, s.config(), string(text)+fmt.Sprintf(`
auto_accept: true
rest_cherrypy: {%s}
netapi_enable_clients: [local, local_async, local_batch, runner, wheel]
external_auth: {file: {^filename: %s/users, alice: ['.*', '@runner', '@wheel']}}
`, listen, s.dir))
			m := &ourMaster{site: s, t: t, root: t, line: "3007", id: "web1"}
			m.up()
			mark := m.bus.mark()
			start(t, ours("salt-minion"), "-c", m.minion(t, "web1", ""))
			m.bus.wait(mark, "salt/minion/web1/start")
			if way == "unix" {
				out, code := output(t, stock(t, "3007", "python"), "../examples/python-service/service.py", s.dir+"/api.sock", "alice", "secret", "web*", "test.echo", "hello")
				if code != 0 || out != `{"web1": "hello"}`+"\n" {
					t.Errorf("the service ended with %d and %q", code, out)
				}
				return
			}
			pepper(t, fmt.Sprintf("http://127.0.0.1:%d", port))
			external(t, s.dir)
		})
	}
}

// pepper runs the pepper command against the interface at a URL.
func pepper(t *testing.T, url string) {
	program := os.Getenv("BRINE_PEPPER")
	if program == "" {
		t.Fatal("BRINE_PEPPER is not set: run this through make interop")
	}
	home := t.TempDir()
	for _, c := range []struct {
		args []string
		want any
	}{
		{[]string{"*", "test.ping"}, map[string]any{"web1": true}},
		{[]string{"--client=local", "web1", "cmd.run", "echo $X", "env={X: hi}"}, map[string]any{"web1": "hi"}},
		{[]string{"--client=local_batch", "--batch", "1", "*", "test.ping"}, map[string]any{"web1": true}},
		{[]string{"--client=runner", "test.metasyntactic", "locality=uk"}, []any{"wibble", "wobble", "wubble", "flob"}},
		{[]string{"--client=wheel", "key.name_match", "match=web*"}, map[string]any{"minions": "web1"}},
	} {
		cmd := exec.Command(program, append([]string{"-u", url, "--username", "alice", "--password", "secret", "--eauth", "file"}, c.args...)...)
		cmd.Env = append(os.Environ(), "HOME="+home, "PEPPERRC="+filepath.Join(home, "none"))
		out, err := cmd.CombinedOutput()
		var got any
		if err != nil || json.Unmarshal(out, &got) != nil {
			t.Errorf("pepper %q: %v\n%s", c.args, err, out)
			continue
		}
		got = unwrapped(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("pepper %q (-want +got):\n%s", c.args, diff)
		}
	}
}

// unwrapped removes the job ids, tags and times that pepper requests (full_return) from around the functions'
// results.
func unwrapped(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = unwrapped(v[i])
		}
		if len(v) == 1 {
			return v[0]
		}
	case map[string]any:
		for k := range v {
			v[k] = unwrapped(v[k])
		}
		if r, ok := v["ret"]; ok {
			return r
		}
		if data, ok := v["data"].(map[string]any); ok {
			return data["return"]
		}
		if r, ok := v["return"]; ok && len(v) == 1 {
			return r
		}
	}
	return v
}

// external runs the command line tools of stock and of brine with a user name and a password.
func external(t *testing.T, dir string) {
	home := t.TempDir()
	for _, c := range []struct {
		program string
		args    []string
		want    string
		code    int
	}{
		{stock(t, "3007", "salt"), []string{"-a", "file", "--username", "alice", "--password", "secret", "--out=json", "--out-indent=-1", "web1", "test.ping"}, `{"web1": true}`, 0},
		{stock(t, "3007", "salt"), []string{"-a", "file", "--username", "alice", "--password", "wrong", "web1", "test.ping"}, "Authentication error occurred.", 0},
		{stock(t, "3007", "salt-run"), []string{"-a", "file", "--username", "alice", "--password", "secret", "--out=json", "--out-indent=-1", "test.metasyntactic", "uk"},
			`["wibble", "wobble", "wubble", "flob"]`, 0},
		{ours("salt"), []string{"-a", "file", "--username", "alice", "--password", "secret", "--out=json", "--out-indent=-1", "web1", "test.ping"}, `{"web1": true}`, 0},
		{ours("salt"), []string{"-T", "-a", "file", "--username", "alice", "--password", "secret", "--out=json", "--out-indent=-1", "web1", "test.ping"}, `{"web1": true}`, 0},
		{ours("salt"), []string{"-T", "-a", "file", "--username", "alice", "--password", "wrong", "web1", "test.ping"}, "Authentication error occurred.", 0},
	} {
		cmd := exec.Command(c.program, append([]string{"-c", dir + "/etc"}, c.args...)...)
		cmd.Env = append(os.Environ(), "HOME="+home)
		out, _ := cmd.Output()
		if got := strings.TrimSpace(string(out)); got != c.want || cmd.ProcessState.ExitCode() != c.code {
			t.Errorf("%s %q ended with %d and %q", c.program, c.args, cmd.ProcessState.ExitCode(), got)
		}
	}
}
