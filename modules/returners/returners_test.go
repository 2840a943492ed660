package returners_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/returners"
	"github.com/brine-salt/brine/modules/returners/carbon"
	"github.com/brine-salt/brine/modules/returners/local"
	"github.com/brine-salt/brine/modules/returners/rawfile"
	"github.com/brine-salt/brine/modules/returners/syslog"
)

func aReturn() map[string]any {
	return map[string]any{"id": "web.1", "jid": "20261121100000000001", "fun": "test.echo", "fun_args": []any{"ü\"\n"}, "success": true,
		"return": map[string]any{"a": int64(1), "b": []any{1.5, nil, []byte("x")}}, "retcode": int64(0)}
}

const asJSON = `{"fun": "test.echo", "fun_args": ["ü\"\n"], "id": "web.1", "jid": "20261121100000000001", "retcode": 0, ` +
	`"return": {"a": 1, "b": [1.5, null, "x"]}, "success": true}`

func env(t *testing.T, opts map[string]any) *modules.Env {
	t.Helper()
	e := modulestest.Env(t)
	e.Opts = func() map[string]any { return opts }
	e.Clock = func() time.Time { return time.Date(2026, 11, 21, 10, 0, 0, 0, time.Local) }
	return e
}

func call(t *testing.T, m *modules.Module, e *modules.Env, fun string, args ...any) any {
	t.Helper()
	res := modules.NewRegistry(m).Run(t.Context(), e, modules.Request{Fun: fun, Args: args})
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	return res.Return
}

func TestJSON(t *testing.T) {
	got, err := returners.JSON(aReturn())
	if err != nil || got != asJSON {
		t.Errorf("%s, %v", got, err)
	}
	deep := any(1)
	for range 1000 {
		deep = []any{deep}
	}
	if _, err := returners.JSON(deep); err == nil {
		t.Error("JSON without bottom is written")
	}
}

func TestOptions(t *testing.T) {
	opts := map[string]any{"db.host": "one", "db": map[string]any{"port": int64(1)}, "other.db.host": "two", "other.db": map[string]any{"user": "u"}}
	e := env(t, opts)
	e.Pillar = func() map[string]any {
		return map[string]any{"db.pass": "secret", "master": map[string]any{"db.user": "m"}}
	}
	var got map[string]any
	m := &modules.Module{Name: "db", Funcs: []modules.Def{returners.Def("returner", "", func(_ context.Context, c *modules.Call) (any, error) {
		ret, err := returners.Return(c)
		got = returners.Options(c, "db", ret, returners.Attrs("host", "port", "user", "pass", "db", "none"), map[string]any{"db": "salt"})
		return nil, err
	}, "ret")}}
	call(t, m, e, "db.returner", map[string]any{})
	if diff := cmp.Diff(map[string]any{"host": "one", "port": int64(1), "user": "m", "pass": "secret", "db": "salt"}, got); diff != "" {
		t.Error(diff)
	}
	call(t, m, e, "db.returner", map[string]any{"ret_config": "other", "ret_kwargs": map[string]any{"db": "given"}})
	if diff := cmp.Diff(map[string]any{"host": "two", "port": int64(1), "user": "u", "pass": "secret", "db": "given"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRawFile(t *testing.T) {
	e := env(t, map[string]any{"rawfile_json.filename": "/events"})
	call(t, rawfile.Module(), e, "rawfile_json.returner", aReturn())
	call(t, rawfile.Module(), e, "rawfile_json.event_return", []any{map[string]any{"tag": "a"}, map[string]any{"tag": "b"}})
	text, err := os.ReadFile(filepath.Join(e.Root, "events"))
	if want := asJSON + "\n{\"tag\": \"a\"}\n{\"tag\": \"b\"}\n"; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	res := modules.NewRegistry(rawfile.Module()).Run(t.Context(), e, modules.Request{Fun: "rawfile_json.returner", Args: []any{"text"}})
	if res.Err == nil {
		t.Error("a text is no return")
	}
}

func TestSyslog(t *testing.T) {
	e := env(t, map[string]any{"syslog": map[string]any{"level": "LOG_ERR", "facility": "LOG_DAEMON", "tag": "mine"}})
	e.Root = shortDir(t)
	if err := os.Mkdir(filepath.Join(e.Root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenPacket("unixgram", filepath.Join(e.Root, "dev/log"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call(t, syslog.Module(), e, "syslog.returner", aReturn())
	b := make([]byte, 1000)
	n, _, err := conn.ReadFrom(b)
	if want := "<27>Nov 21 10:00:00 mine: " + asJSON; err != nil || string(b[:n]) != want {
		t.Errorf("%s, %v", b[:n], err)
	}
}

// shortDir is a directory with a name that is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "brine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestCarbon(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := make([]byte, 1000)
		n, _ := conn.Read(b)
		got <- string(b[:n])
	}()
	host, port, _ := strings.Cut(l.Addr().String(), ":")
	e := env(t, map[string]any{"carbon.host": host, "carbon.port": port})
	ret := aReturn()
	ret["return"] = map[string]any{"load": 1.5, "n": map[string]any{"x": "3"}}
	call(t, carbon.Module(), e, "carbon.returner", ret)
	at := strconv.FormatInt(e.Clock().Unix(), 10)
	if want := "test.echo.web_1.load 1.5 " + at + "\ntest.echo.web_1.n.x 3.0 " + at + "\n"; <-got != want {
		t.Errorf("want %q", want)
	}
	ret["return"] = "text"
	if res := modules.NewRegistry(carbon.Module()).Run(t.Context(), e, modules.Request{Fun: "carbon.returner", Args: []any{ret}}); res.Err == nil {
		t.Error("a text is no metric")
	}
}

func TestLocal(t *testing.T) {
	if got := call(t, local.Module(), env(t, nil), "local.returner", aReturn()); got != nil {
		t.Errorf("%v", got)
	}
}

func TestJobInstance(t *testing.T) {
	got := returners.JobInstance("20261121100000000001", map[string]any{"fun": "test.ping", "arg": []any{map[string]any{"__kwarg__": true, "metadata": "m"}}, "tgt": "*"})
	want := map[string]any{"Function": "test.ping", "Arguments": []any{map[string]any{"__kwarg__": true, "metadata": "m"}}, "Target": "*", "Target-type": "list",
		"User": "root", "StartTime": "2026, Nov 21 10:00:00.000001", "Metadata": "m"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
