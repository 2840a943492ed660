//go:build openstack

package trove

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// instance is an instance of Trove with Debian's MariaDB or PostgreSQL in its own directory. The test implements the
// module service: it starts and stops the server with the configuration that the agent has written.
type instance struct {
	t       *testing.T
	dir     string
	port    string
	owner   string         // the server's user
	command []string       // the server
	end     syscall.Signal // signal that stops the server
	env     *modules.Env
	reg     *modules.Registry
	opts    map[string]any

	mu     sync.Mutex
	server *exec.Cmd     // guarded by mu
	ended  chan struct{} // guarded by mu
	events []event       // guarded by mu
}

type event struct {
	tag  string
	data map[string]any
}

func newInstance(t *testing.T, more map[string]any) *instance {
	t.Helper()
	testserver.Program(t, "mariadbd")
	prereq.Root(t)
	dir, _ := testserver.Dir(t, "mysql")
	i := &instance{t: t, dir: dir, port: testserver.Port(t), owner: "mysql",
		command: []string{"/usr/sbin/mariadbd", "--defaults-file=" + dir + "/etc/my.cnf"}, end: syscall.SIGTERM}
	trove := map[string]any{
		"datastore_manager": "mariadb", "datastore_version": "10.11", "service": "mariadb", "socket": dir + "/s", "mount_point": dir,
		"config_file": dir + "/etc/my.cnf", "include_dir": dir + "/etc/conf.d", "state_dir": dir + "/state", "modules_dir": dir + "/modules",
		"error_log": dir + "/error.log", "address": "127.0.0.1", "state_change_poll_time": 0.05, "state_change_wait_time": int64(60),
		"store": map[string]any{"type": "directory", "path": dir + "/store"},
	}
	i.begin(trove, more)
	return i
}

// begin creates the minion of the instance.
func (i *instance) begin(trove, more map[string]any) {
	t := i.t
	t.Helper()
	maps.Copy(trove, more)
	i.opts = map[string]any{"id": "inst-1", "trove": trove}
	e := modulestest.Env(t)
	e.ID, e.Root, e.Runner = "inst-1", "", &runcmd.Runner{}
	e.Opts = func() map[string]any { return i.opts }
	e.Master = modulestest.Master(i.request)
	i.env = e
	service := func(do func() error) modules.Func {
		return func(_ context.Context, c *modules.Call) (any, error) {
			if c.Str("name") != trove["service"] {
				return false, nil
			}
			return true, do()
		}
	}
	name := []modules.Param{{Name: "name"}}
	i.reg = modules.NewRegistry(Module, &modules.Module{Name: "service", Funcs: []modules.Def{
		{Name: "start", Params: name, Run: service(i.startServer)},
		{Name: "stop", Params: name, Run: service(i.stopServer)},
		{Name: "restart", Params: name, Run: service(func() error { return errors.Join(i.stopServer(), i.startServer()) })},
	}})
	t.Cleanup(func() {
		if err := i.stopServer(); err != nil {
			t.Error(err)
		}
	})
}

func (i *instance) startServer() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.server != nil {
		return nil
	}
	u, err := user.Lookup(i.owner)
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	log, err := os.OpenFile(filepath.Join(i.dir, "error.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(i.command[0], i.command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, Setpgid: true,
		Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	if err := cmd.Start(); err != nil {
		return err
	}
	i.server, i.ended = cmd, make(chan struct{})
	go func() { _ = cmd.Wait(); close(i.ended) }()
	return nil
}

func (i *instance) stopServer() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.server == nil {
		return nil
	}
	_ = i.server.Process.Signal(i.end)
	select {
	case <-i.ended:
	case <-time.After(time.Minute):
		return errors.New("the server does not end")
	}
	i.server = nil
	return nil
}

// request implements the master, which records events.
func (i *instance) request(_ context.Context, load map[string]any) (any, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if list, ok := load["events"].([]any); ok {
		for _, x := range list {
			m := x.(map[string]any)
			i.events = append(i.events, event{m["tag"].(string), m["data"].(map[string]any)})
		}
		return true, nil
	}
	i.events = append(i.events, event{load["tag"].(string), load["data"].(map[string]any)})
	return true, nil
}

// seen returns the tags and the relevant data of the events since the last call.
func (i *instance) seen() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var list []string
	for _, e := range i.events {
		if strings.HasSuffix(e.tag, "/trove/heartbeat") {
			list = append(list, fmt.Sprintf("%s %v", e.tag, e.data["payload"].(map[string]any)["service_status"]))
			continue
		}
		list = append(list, fmt.Sprintf("%s %v", e.tag, e.data["state"]))
	}
	i.events = nil
	return list
}

// run calls a function of the agent.
func (i *instance) run(fun string, kwargs map[string]any) (any, error) {
	ctx, cancel := context.WithTimeout(i.t.Context(), 2*time.Minute)
	defer cancel()
	r := i.reg.Run(ctx, i.env, modules.Request{Fun: "trove." + fun, Kwargs: kwargs})
	return r.Return, r.Err
}

// must calls a function that must succeed. Its arguments are JSON.
func (i *instance) must(fun, kwargs string) any {
	i.t.Helper()
	v, err := i.run(fun, i.args(kwargs))
	if err != nil {
		i.t.Fatalf("%s: %v\n%s", fun, err, i.lastLog())
	}
	return v
}

// fails calls a function that must fail, and returns the error's text.
func (i *instance) fails(fun, kwargs string) string {
	i.t.Helper()
	v, err := i.run(fun, i.args(kwargs))
	if err == nil {
		i.t.Fatalf("%s succeeds with %v", fun, v)
	}
	return err.Error()
}

// equal calls a function whose result must equal want, in JSON.
func (i *instance) equal(fun, kwargs, want string) {
	i.t.Helper()
	b, err := json.Marshal(i.must(fun, kwargs))
	if err != nil {
		i.t.Fatal(err)
	}
	if string(b) != want {
		i.t.Errorf("%s(%s):\n%s, not\n%s", fun, kwargs, b, want)
	}
}

func (i *instance) args(text string) map[string]any {
	i.t.Helper()
	m := map[string]any{}
	if text == "" {
		return m
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		i.t.Fatalf("%s: %v", text, err)
	}
	return ints(m).(map[string]any)
}

// ints converts whole numbers to integers, as they arrive from a master.
func ints(v any) any {
	switch v := v.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = ints(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = ints(v[k])
		}
	}
	return v
}

func (i *instance) lastLog() string {
	b, _ := os.ReadFile(filepath.Join(i.dir, "error.log"))
	lines := strings.Split(string(b), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// config returns the configuration that Trove's templates would send.
func (i *instance) config() string {
	return fmt.Sprintf("[mysqld]\nsocket=%[1]s/s\nport=%[2]s\nbind_address=127.0.0.1\npid_file=%[1]s/pid\nskip_name_resolve\n"+
		"innodb_buffer_pool_size=16M\ninnodb_log_file_size=8M\ninnodb_fast_shutdown=2\nserver_id=%[2]s\n!includedir %[1]s/etc/conf.d\n", i.dir, i.port)
}

func quoteJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// prepare sets up the instance's datastore.
func (i *instance) prepare(more string) {
	i.t.Helper()
	i.must("prepare", `{"memory_mb": 512, "packages": [], "databases": [], "users": [], "device_path": null, "mount_point": `+
		quoteJSON(i.dir)+`, "config_contents": `+quoteJSON(i.config())+more+`}`)
}

// query runs a statement as the administrator.
func (i *instance) query(statement string) string {
	i.t.Helper()
	out, err := exec.CommandContext(i.t.Context(), testserver.Program(i.t, "mariadb"), "--defaults-file="+i.dir+"/conf.d/os_admin.cnf",
		"--socket="+i.dir+"/s", "-N", "-B", "-e", statement).CombinedOutput()
	if err != nil {
		i.t.Fatalf("%s: %v: %s", statement, err, out)
	}
	return strings.TrimSpace(string(out))
}

// loginAs logs in over TCP, and returns the current user or the error.
func (i *instance) loginAs(name, password string) string {
	i.t.Helper()
	cmd := exec.CommandContext(i.t.Context(), testserver.Program(i.t, "mariadb"), "--no-defaults", "-h", "127.0.0.1", "-P", i.port, "-u", name,
		"-N", "-B", "-e", "SELECT CURRENT_USER()")
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+password)
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out))
}
