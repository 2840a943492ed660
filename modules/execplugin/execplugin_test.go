//go:build unix

package execplugin

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/modules"
)

// host is a minion with a directory of programs.
type host struct {
	t   *testing.T
	dir string
	env *modules.Env
	reg *modules.Registry
	log *testlog.Buffer
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{t: t, dir: filepath.Join(t.TempDir(), "modules.d"), log: &testlog.Buffer{}}
	if err := os.Mkdir(h.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	runner := &runcmd.Runner{}
	t.Cleanup(func() { runner.Close() })
	opts := map[string]any{"id": "web1", "config_dir": filepath.Dir(h.dir)}
	h.env = &modules.Env{ID: "web1", Runner: runner,
		Log:    slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Opts:   func() map[string]any { return opts },
		Grains: func() map[string]any { return map[string]any{"os": "Debian"} },
		Pillar: func() map[string]any { return map[string]any{"raw": []byte{0xff}, "n": map[any]any{int64(1): "x"}} },
	}
	h.reg = modules.NewRegistry(native)
	h.reg.AddSource(&Source{})
	return h
}

// native is a module of the program.
var native = &modules.Module{Name: "native", Funcs: []modules.Def{
	{Name: "echo", Params: []modules.Param{{Name: "x"}}, Run: func(_ context.Context, c *modules.Call) (any, error) { return c.Value("x"), nil }},
	{Name: "fail", Run: func(context.Context, *modules.Call) (any, error) { return nil, modules.Errorf("no disk") }},
}}

// put writes a program into the directory.
func (h *host) put(file string, mode os.FileMode, text string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, file)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// shell is a program of one function, f, in shell.
func (h *host) shell(name, function, body string) string {
	h.t.Helper()
	return h.put(name, 0o755, fmt.Sprintf("#!/bin/sh\nif [ $1 = describe ]; then cat <<'DESCRIPTION'\n"+
		`{"protocol": 1, "functions": {"f": %s}}`+"\nDESCRIPTION\nexit; fi\n%s\n", function, body))
}

func (h *host) call(fun string, args ...any) modules.Result {
	h.t.Helper()
	return h.reg.Run(h.t.Context(), h.env, modules.Request{Fun: fun, JID: "7", Args: args})
}

func TestPlainResults(t *testing.T) {
	cases := map[string]struct {
		function, body string
		args           []any
		want           any
		retcode        int
	}{
		"value":      {`{}`, `echo '{"a": [1, 2.5, null, true, "ä"]}'`, nil, map[string]any{"a": []any{int64(1), 2.5, nil, true, "ä"}}, 0},
		"nothing":    {`{}`, ``, nil, nil, 0},
		"bytes":      {`{}`, `echo '{"__bytes__": "/w=="}'`, nil, []byte{0xff}, 0},
		"retcode":    {`{}`, `echo '"half"'; exit 3`, nil, "half", 3},
		"failure":    {`{}`, `echo one >&2; echo 'no disk' >&2; exit 4`, nil, "ERROR: no disk", 4},
		"silent":     {`{}`, `exit 5`, nil, "ERROR: the program ended with exit status 5", 5},
		"signal":     {`{}`, `kill -KILL $$`, nil, "ERROR: the program was ended by signal 9", -9},
		"not JSON":   {`{}`, `echo hello`, nil, "ERROR: the program's standard output is not one JSON value: invalid character 'h' looking for beginning of value", 1},
		"two values": {`{}`, `echo 1 2`, nil, "ERROR: the program's standard output is not one JSON value: there is more after the value", 1},
		"arguments": {`{"params": [{"name": "a"}, {"name": "b", "default": 2}], "args": "rest", "kwargs": "kw"}`, `cat`,
			[]any{map[any]any{int64(1): []byte{0xfe}}, "x", "y"},
			map[string]any{"type": "call", "protocol": int64(1), "fun": "f", "module": "m", "id": "web1", "jid": "7", "test": false,
				"args": map[string]any{"a": map[string]any{"1": []byte{0xfe}}, "b": "x"}, "extra": []any{"y"}, "kwargs": map[string]any{}}, 0},
		"schema": {`{"params": [{"name": "n", "type": "integer", "minimum": 1}]}`, `touch ran; echo 1`, []any{int64(0)},
			"ERROR executing 'm.f': n: 0 is less than 1", 1},
		"secret schema": {`{"params": [{"name": "n", "type": "integer", "secret": true}]}`, `echo 1`, []any{"hunter2"},
			"ERROR executing 'm.f': n: the value is not an integer", 1},
		"missing": {`{"doc": "Do it.", "params": [{"name": "n"}]}`, `echo 1`, nil,
			"Passed invalid arguments to m.f: f() missing 1 required positional argument: 'n'\nDo it.", 1},
		"timeout": {`{"timeout": 0.05}`, `sleep 60`, nil, "ERROR: Timed out after 0.05 seconds", 1},
		"endless": {`{}`, `yes`, nil, "ERROR: the program printed more than 16777216 bytes", 1},
		"no such": {`{}`, ``, nil, nil, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.shell("m.sh", c.function, c.body)
			res := h.call("m.f", c.args...)
			if diff := cmp.Diff(c.want, res.Return); diff != "" || res.Retcode != c.retcode {
				t.Errorf("retcode %d, want %d\n%s", res.Retcode, c.retcode, diff)
			}
		})
	}
}

// python is a program of one function that talks in messages.
func (h *host) python(name, function, body string) {
	h.t.Helper()
	needPython(h.t)
	h.put(name, 0o755, "#!/usr/bin/env python3\nimport json, sys, os, time\n"+
		"if sys.argv[1] == 'describe':\n    print('"+`{"protocol": 1, "functions": {"f": `+function+"}}')\n    sys.exit()\n"+
		"def send(**m):\n    print(json.dumps(m), flush=True)\n"+
		"def ask(**m):\n    send(type='request', id=7, **m)\n    a = json.loads(sys.stdin.readline())\n    assert a['type'] == 'answer' and a['id'] == 7\n    return a.get('error') or a.get('value')\n"+
		"call = json.loads(sys.stdin.readline())\n"+body+"\n")
}

func TestMessages(t *testing.T) {
	cases := map[string]struct {
		body    string
		want    any
		retcode int
	}{
		"return":         {"send(type='return', value=call['args'])", map[string]any{"a": "x"}, 0},
		"retcode":        {"send(type='return', value=1, retcode=6)", int64(1), 6},
		"exit status":    {"send(type='return', value=1)\nsys.exit(7)", int64(1), 7},
		"no end of line": {"sys.stdout.write(json.dumps({'type': 'return', 'value': 2}))", int64(2), 0},
		"call":           {"send(type='return', value=ask(method='salt.call', fun='native.echo', args=[{'a': 1}]))", map[string]any{"a": int64(1)}, 0},
		"keywords":       {"send(type='return', value=ask(method='salt.call', fun='native.echo', kwargs={'x': 'y'}))", "y", 0},
		"failing call": {"send(type='return', value=ask(method='salt.call', fun='native.fail'))",
			map[string]any{"kind": "execution", "message": "no disk"}, 0},
		"absent call": {"send(type='return', value=ask(method='salt.call', fun='no.such'))",
			map[string]any{"kind": "not_available", "message": "'no.such' is not available."}, 0},
		"list":         {"send(type='return', value=ask(method='salt.list'))", []any{"m.f", "native.echo", "native.fail"}, 0},
		"grain":        {"send(type='return', value=ask(method='grains', key='os'))", "Debian", 0},
		"no grain":     {"send(type='return', value=ask(method='grains', key='none'))", nil, 0},
		"pillar":       {"send(type='return', value=ask(method='pillar'))", map[string]any{"raw": []byte{0xff}, "n": map[string]any{"1": "x"}}, 0},
		"config":       {"send(type='return', value=ask(method='config', key='id'))", "web1", 0},
		"no method":    {"send(type='return', value=ask(method='shell'))", map[string]any{"kind": "usage", "message": `there is no method "shell"`}, 0},
		"execution":    {"send(type='error', kind='execution', message='no')", "ERROR: no", 1},
		"usage":        {"send(type='error', kind='usage', message='no')", "ERROR executing 'm.f': no", 1},
		"type":         {"send(type='error', kind='type', message='no', retcode=9)", "Passed invalid arguments to m.f: no\n", 9},
		"missing":      {"send(type='error', kind='missing_command', message='git')", "Command required for 'm.f' not found: git", 1},
		"exception":    {"send(type='error', kind='exception', exception='ValueError', message='no')", "The minion function caused an exception: ValueError: no", 1},
		"nothing":      {"", "ERROR: the program does not keep to the protocol: it ended without a result", 1},
		"failure":      {"sys.exit('no disk')", "ERROR: no disk", 1},
		"no message":   {"print('hello')", "ERROR: the program does not keep to the protocol: cannot read JSON: invalid character 'h' looking for beginning of value", 1},
		"no object":    {"print('5')", "ERROR: the program does not keep to the protocol: a message is an object, not 5", 1},
		"strange type": {"send(type='x')\ntime.sleep(60)", `ERROR: the program does not keep to the protocol: there is no message of type "x"`, 1},
		"endless line": {"while True: sys.stdout.write('x' * 1000000)", "ERROR: the program does not keep to the protocol: a message is longer than 16777216 bytes", 1},
		"many":         {"for i in range(20000): send(type='progress', item=i)\nsend(type='return', value='done')", "done", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.python("m.py", `{"messages": true, "params": [{"name": "a", "default": "x"}]}`, c.body)
			res := h.call("m.f")
			if diff := cmp.Diff(c.want, res.Return); diff != "" || res.Retcode != c.retcode {
				t.Errorf("retcode %d, want %d\n%s", res.Retcode, c.retcode, diff)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	h := newHost(t)
	h.python("m.py", `{"messages": true}`, "for i in range(3): send(type='progress', item={'n': i})\nsend(type='return', value=None)")
	var got []any
	res := h.reg.Run(t.Context(), h.env, modules.Request{Fun: "m.f", Progress: func(item any) { got = append(got, item) }})
	want := []any{map[string]any{"n": int64(0)}, map[string]any{"n": int64(1)}, map[string]any{"n": int64(2)}}
	if diff := cmp.Diff(want, got); diff != "" || res.Err != nil {
		t.Errorf("%v\n%s", res.Err, diff)
	}
}

// TestCancel ends a job, whose program may put things in order and then is gone with all that it started.
func TestCancel(t *testing.T) {
	h := newHost(t)
	h.python("m.py", `{"messages": true}`, "import signal, subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"+
		"def end(*_):\n    open(os.path.join(os.path.dirname(__file__), '..', 'ended'), 'w').write(str(child.pid))\n    os._exit(0)\n"+
		"signal.signal(signal.SIGTERM, end)\nsend(type='progress', item=1)\ntime.sleep(600)")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res := h.reg.Run(ctx, h.env, modules.Request{Fun: "m.f", Progress: func(any) { cancel() }})
	if res.Err == nil || !strings.Contains(fmt.Sprint(res.Return), "context canceled") {
		t.Errorf("got %+v", res)
	}
	pid, err := os.ReadFile(filepath.Join(h.dir, "..", "ended"))
	if err != nil {
		t.Fatal("the program was not asked to end:", err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		stat, err := os.ReadFile("/proc/" + string(pid) + "/stat")
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("its child lives on")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestLog(t *testing.T) {
	h := newHost(t)
	h.shell("m", `{"params": [{"name": "pw", "secret": true}, {"name": "n", "default": 1}]}`,
		"echo 'with hunter2' >&2; echo '<3>bad' >&2; printf '<4>second line\\nlast' >&2; head -c 20000 /dev/zero | tr '\\0' x >&2; echo >&2; echo 'failed for hunter2' >&2; exit 2")
	res := h.call("m.f", "hunter2\nsecond line")
	if res.Return != "ERROR: failed for **********" {
		t.Errorf("got %v", res.Return)
	}
	log := h.log.String()
	if strings.Contains(log, "hunter2") || strings.Contains(log, "second line") {
		t.Errorf("a secret is in the log:\n%s", log)
	}
	for _, want := range []string{
		`level=INFO msg="with **********" fun=m.f jid=7`, "level=ERROR msg=bad", "level=WARN msg=**********", strings.Repeat("x", 8000),
	} {
		if !strings.Contains(log, want) {
			t.Errorf("no %.50q in the log:\n%.2000s", want, log)
		}
	}
	if strings.Contains(log, strings.Repeat("x", maxLine+1)) {
		t.Error("a long line is not cut")
	}
}

func TestTrust(t *testing.T) {
	cases := map[string]struct {
		change func(h *host, path string) error
		want   string
	}{
		"group":      {func(_ *host, p string) error { return os.Chmod(p, 0o775) }, "is writable by its group (mode 0775)"},
		"everybody":  {func(_ *host, p string) error { return os.Chmod(p, 0o777) }, "is writable by everybody (mode 0777)"},
		"no program": {func(_ *host, p string) error { return os.Chmod(p, 0o644) }, "it is not executable"},
		"directory": {func(h *host, _ string) error { return os.Chmod(h.dir, 0o777) },
			"modules.d is writable by everybody (mode 0777)"},
		"above": {func(h *host, _ string) error { return os.Chmod(filepath.Dir(h.dir), 0o777) }, "is writable by everybody (mode 0777)"},
		"link": {func(h *host, p string) error {
			elsewhere := filepath.Join(h.dir, "..", "loose")
			if err := os.Mkdir(elsewhere, 0o755); err != nil {
				return err
			}
			if err := os.Chmod(elsewhere, 0o777); err != nil {
				return err
			}
			if err := os.Rename(p, filepath.Join(elsewhere, "m")); err != nil {
				return err
			}
			return os.Symlink("../loose/m", p)
		}, "loose is writable by everybody (mode 0777)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			path := h.shell("m", `{}`, `echo 1`)
			if got := h.call("m.f").Return; got != int64(1) {
				t.Fatalf("before: %v", got)
			}
			if err := c.change(h, path); err != nil {
				t.Fatal(err)
			}
			h.reg.Reset() // the change of a directory above is noticed at the latest now
			res := h.call("m.f")
			if res.Err == nil || !strings.Contains(h.log.String(), c.want) {
				t.Errorf("got %v, log:\n%s", res.Return, h.log)
			}
			if name != "directory" && name != "no program" && name != "above" && !strings.Contains(fmt.Sprint(res.Return), c.want) {
				t.Errorf("got %v", res.Return)
			}
		})
	}
	if os.Geteuid() == 0 {
		t.Run("another owner", func(t *testing.T) {
			h := newHost(t)
			path := h.shell("m", `{}`, `echo 1`)
			if err := os.Chown(path, 65534, 0); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(h.call("m.f").Return); !strings.Contains(got, "belongs to user 65534, not to root") {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestDescriptionsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                               "protocol 0 is not spoken here, only 1",
		`{"protocol": 2}`:                  "protocol 2 is not spoken here, only 1",
		`{"protocol": 1, "functoins": {}}`: `cannot read the description: json: unknown field "functoins"`,
		`[`:                                "cannot read JSON: unexpected EOF",
		`{"protocol": 1, "functions": {"a b": {}}}`:                                                         `function "a b": this is no name of a function`,
		`{"protocol": 1, "functions": {"_a": {}}}`:                                                          `function "_a": this is no name of a function`,
		`{"protocol": 1, "functions": {"a": {"params": [5]}}}`:                                              `function "a": parameter 1: not an object`,
		`{"protocol": 1, "functions": {"a": {"params": [{}]}}}`:                                             `function "a": parameter 1: "" is no name of a parameter`,
		`{"protocol": 1, "functions": {"a": {"params": [{"name": "x"}, {"name": "x"}]}}}`:                   `function "a": parameter "x" is there twice`,
		`{"protocol": 1, "functions": {"a": {"params": [{"name": "x", "optional": true}, {"name": "y"}]}}}`: `function "a": parameter "y" is required and stands after one that is not`,
		`{"protocol": 1, "functions": {"a": {"params": [{"name": "x", "secret": 1}]}}}`:                     `function "a": parameter 1: secret: neither true nor false`,
		`{"protocol": 1, "functions": {"a": {"params": [{"name": "x", "$ref": "#"}]}}}`:                     `function "a": parameter 1: schema.$ref: this keyword is not supported`,
		`{"protocol": 1, "functions": {"a": {"params": [{"name": "x", "type": "string", "default": 5}]}}}`:  `function "a": parameter 1: default: 5 is not a string`,
		`{"protocol": 1, "functions": {"a": {"timeout": -1}}}`:                                              `function "a": timeout: -1 seconds make no sense`,
	} {
		if _, err := ParseDescription([]byte(text), "m"); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v, want\n%s", text, err, want)
		}
	}
}

func TestDeclarations(t *testing.T) {
	h := newHost(t)
	h.shell("m.sh", `{"doc": "Do it.", "out": "txt", "args": "rest", "params": [{"name": "a", "type": "string", "minLength": 2, "secret": true}, {"name": "b", "default": null}, {"name": "c", "default": 3, "keyword_only": true}]}`, `echo 1`)
	if diff := cmp.Diff([]string{"m.f", "native.echo", "native.fail"}, h.reg.Functions(h.env)); diff != "" {
		t.Error(diff)
	}
	def, err := h.reg.Lookup("m.f", h.env)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"args": []any{"a", "b", "c"}, "defaults": []any{nil, int64(3)}, "varargs": true, "kwargs": nil}
	if diff := cmp.Diff(want, def.Argspec()); diff != "" {
		t.Error(diff)
	}
	schema := map[string]any{"type": "object", "required": []any{"a"}, "additionalProperties": false, "properties": map[string]any{
		"a": map[string]any{"type": "string", "minLength": int64(2), "writeOnly": true}, "b": map[string]any{}, "c": map[string]any{"default": int64(3)}}}
	if diff := cmp.Diff(schema, def.Schema()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"m.f": "Do it."}, h.reg.Docs(h.env, "m")); diff != "" {
		t.Error(diff)
	}
	if res := h.call("m.f", "xy"); res.Out != "txt" {
		t.Errorf("got %+v", res)
	}
}

// TestReload puts, changes and removes programs while the agent runs.
func TestReload(t *testing.T) {
	h := newHost(t)
	if got := h.call("m.f").Return; got != "'m.f' is not available." {
		t.Fatalf("got %v", got)
	}
	count := filepath.Join(h.dir, "..", "described")
	path := h.put("m", 0o755, "#!/bin/sh\n[ $1 = describe ] && { echo x >> "+count+"; echo '{\"protocol\": 1, \"functions\": {\"f\": {}}}'; exit; }\necho 1\n")
	for range 3 {
		if got := h.call("m.f").Return; got != int64(1) {
			t.Fatalf("got %v", got)
		}
	}
	if b, _ := os.ReadFile(count); string(b) != "x\n" {
		t.Errorf("it described itself %d times", len(b)/2)
	}
	h.shell("m", `{}`, `echo '"changed"'`)
	if got := h.call("m.f").Return; got != "changed" {
		t.Errorf("got %v", got)
	}
	h.shell("native", `{}`, `echo '"replaced"'`)
	if got := h.call("native.f").Return; got != "replaced" {
		t.Errorf("got %v", got)
	}
	h.put("other", 0o755, "#!/bin/sh\necho '{\"protocol\": 1, \"available\": false, \"reason\": \"wrong moon\", \"functions\": {}}'\n")
	if got := h.call("other.f").Return; got != "'other' __virtual__ returned False: wrong moon" {
		t.Errorf("got %v", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := h.call("m.f").Return; got != "'m.f' is not available." {
		t.Errorf("got %v", got)
	}
}

func TestNames(t *testing.T) {
	for file, want := range map[string]string{"a": "a", "a.sh": "a", "a_1.v2.py": "a_1", "_a": "", ".a": "", "a-b": "", "a~": "", "a.sh.bak": "",
		"a.dpkg-new": "", "1a": "", "README.md": ""} {
		if got := programName("/x/"+file, false); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}
