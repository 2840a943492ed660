//go:build unix

package execplugin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		prereq.Missing(t, "python3")
	}
}

// pythonHost is a minion with a directory of Python modules.
func pythonHost(t *testing.T, files map[string]string) *host {
	t.Helper()
	needPython(t)
	h := newHost(t)
	opts := h.env.Config()
	h.dir = filepath.Join(filepath.Dir(h.dir), "python")
	if err := os.Mkdir(h.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	opts["module_dirs"] = []any{h.dir}
	for name, text := range files {
		if dir := filepath.Dir(name); dir != "." {
			if err := os.MkdirAll(filepath.Join(h.dir, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		h.put(name, 0o644, text)
	}
	return h
}

const ownModule = `"""Things of our own."""
import logging
import subprocess
import salt.utils.path
from salt.exceptions import CommandExecutionError, CommandNotFoundError, SaltInvocationError
from salt.utils.decorators import depends

try:
    import no_such_library
except ImportError:
    no_such_library = None

log = logging.getLogger(__name__)
__virtualname__ = "own"
__func_alias__ = {"list_": "list"}
__outputter__ = {"list": "txt"}
PREFIX = object()


def __virtual__():
    return __virtualname__ if __grains__["os"] == "Debian" and "native.echo" in __salt__ else (False, "not Debian")


def _private():
    pass


def list_(a, b=2, *args, **kwargs):
    "List it."
    return {"a": a, "b": b, "args": args, "kw": kwargs, 1: b"\xff", "set": {5}}


def only(*, key=PREFIX, password=None):
    return key is PREFIX, password


def shell():
    print("printed")
    log.error("two\nlines")
    return subprocess.check_output("read x; echo got $x", shell=True)


def fail(kind):
    raise {"exec": CommandExecutionError, "usage": SaltInvocationError, "missing": CommandNotFoundError, "type": TypeError, "value": ValueError}[kind]("no")


def ask(fun, *args, **kwargs):
    return __salt__[fun](*args, **kwargs)


def catch():
    try:
        __salt__["native.fail"]()
    except CommandExecutionError as exc:
        return str(exc)


def data():
    return __opts__["id"], __grains__["os"], __pillar__, __opts__["pillar"] is __pillar__


def count():
    __context__["n"] = __context__.get("n", 0) + 1
    return __context__["n"]


def retcode():
    __context__["retcode"] = 5
    return "r"


def generate():
    yield {"a": 1}
    yield {"b": 2}


def leave():
    raise SystemExit(3)


def die():
    import os
    os._exit(4)


@depends("no_such_library")
def needs():
    return True


@depends("salt")
def has():
    return True
`

func TestPython(t *testing.T) {
	h := pythonHost(t, map[string]string{
		"ours.py":            ownModule,
		"other.py":           "def hello(name):\n    return 'hello ' + name\ndef back(n):\n    return __salt__['own.count']()\n",
		"folder/__init__.py": "from .part import value\ndef get():\n    return value\n",
		"folder/part.py":     "value = 'part'\n",
		"broken.py":          "import no_such_library\n",
		"never.py":           "def __virtual__():\n    return False, 'not today'\n",
		"crash.py":           "import os\nos._exit(9)\n",
		"_hidden.py":         "def x():\n    return 1\n",
	})
	job := &modules.Context{}
	cases := []struct {
		fun     string
		args    []any
		kwargs  map[string]any
		want    any
		retcode int
	}{
		{"own.list", []any{"x", int64(1), []any{"y"}}, map[string]any{"k": map[any]any{int64(7): "z"}}, map[any]any{"a": "x", "b": int64(1),
			"args": []any{[]any{"y"}}, "kw": map[string]any{"k": map[any]any{int64(7): "z"}}, int64(1): []byte{0xff}, "set": []any{int64(5)}}, 0},
		{"own.list", nil, nil, "Passed invalid arguments to own.list: list_() missing 1 required positional argument: 'a'\nList it.", 1},
		{"own.only", nil, map[string]any{"password": "p"}, []any{true, "p"}, 0},
		{"own.only", nil, map[string]any{"key": int64(1)}, []any{false, nil}, 0},
		{"own.shell", nil, nil, "got\n", 0},
		{"own.fail", []any{"exec"}, nil, "ERROR: no", 1},
		{"own.fail", []any{"usage"}, nil, "ERROR executing 'own.fail': no", 1},
		{"own.fail", []any{"missing"}, nil, "Command required for 'own.fail' not found: no", 1},
		{"own.fail", []any{"type"}, nil, "Passed invalid arguments to own.fail: no\n", 1},
		{"own.ask", []any{"native.echo", map[string]any{"a": []any{nil, 1.5}}}, nil, map[string]any{"a": []any{nil, 1.5}}, 0},
		{"own.ask", []any{"native.echo"}, map[string]any{"x": []byte{0xfe}}, []byte{0xfe}, 0},
		{"own.ask", []any{"other.hello", "you"}, nil, "hello you", 0},
		{"own.count", nil, nil, int64(1), 0},
		{"own.count", nil, nil, int64(2), 0},
		{"own.ask", []any{"other.back", int64(1)}, nil, int64(3), 0}, // in the same process, as in Salt
		{"own.catch", nil, nil, "no disk", 0},
		{"own.data", nil, nil, []any{"web1", "Debian", map[string]any{"raw": []byte{0xff}, "n": map[any]any{int64(1): "x"}}, true}, 0},
		{"own.retcode", nil, nil, "r", 5},
		{"own.generate", nil, nil, map[string]any{"a": int64(1), "b": int64(2)}, 0},
		{"own.leave", nil, nil, "ERROR: the module called sys.exit(3)", 1},
		{"own.die", nil, nil, "ERROR: the program ended with exit status 4", 4},
		{"own.has", nil, nil, true, 0},
		{"own.needs", nil, nil, "'own.needs' is not available.", 1},
		{"own._private", nil, nil, "'own._private' is not available.", 1},
		{"ours.list", nil, nil, "'ours.list' is not available.", 1},
		{"folder.get", nil, nil, "part", 0},
		{"never.x", nil, nil, "'never' __virtual__ returned False: not today", 1},
		{"_hidden.x", nil, nil, "'_hidden.x' is not available.", 1},
	}
	for _, c := range cases {
		res := h.reg.Run(t.Context(), h.env, modules.Request{Fun: c.fun, Args: c.args, Kwargs: c.kwargs, Context: job})
		got := res.Return
		if docs, ok := got.(map[string]any); ok && docs[c.fun] != nil && res.Err != nil {
			got = docs[c.fun]
		}
		if diff := cmp.Diff(c.want, got); diff != "" || res.Retcode != c.retcode {
			t.Errorf("%s %v %v: retcode %d\n%s", c.fun, c.args, c.kwargs, res.Retcode, diff)
		}
	}
	for fun, want := range map[string]string{
		"own.fail": "The minion function caused an exception: Traceback (most recent call last):\n  File \"" + h.dir + "/ours.py\"",
		"broken.x": "'broken' __virtual__ returned False: cannot load " + h.dir + "/broken.py: ModuleNotFoundError: No module named 'no_such_library'",
		"crash.x":  "'crash' __virtual__ returned False: cannot use " + h.dir + "/crash.py: Python ended",
	} {
		if got := fmt.Sprint(h.call(fun, "value").Return); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", fun, got)
		}
	}
	for _, want := range []string{"level=INFO msg=printed fun=own.shell", "level=ERROR msg=lines fun=own.shell"} {
		if !strings.Contains(h.log.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, h.log)
		}
	}
	want := []string{"folder.get", "native.echo", "native.fail", "other.back", "other.hello", "own.ask", "own.catch", "own.count", "own.data", "own.die",
		"own.fail", "own.generate", "own.has", "own.leave", "own.list", "own.only", "own.retcode", "own.shell"}
	if diff := cmp.Diff(want, h.reg.Functions(h.env)); diff != "" {
		t.Error(diff)
	}
	if def, err := h.reg.Lookup("own.only", h.env); err != nil || !def.Params[1].Secret || def.Params[0].Secret {
		t.Errorf("%+v, %v", def, err)
	}
}

// TestPythonJobs lets the calls of one job share a process and those of two jobs share nothing.
func TestPythonJobs(t *testing.T) {
	h := pythonHost(t, map[string]string{"a.py": "def count():\n    __context__['n'] = __context__.get('n', 0) + 1\n    return __context__['n']\n"})
	for range 2 {
		job := &modules.Context{}
		for want := int64(1); want < 4; want++ {
			if res := h.reg.Run(t.Context(), h.env, modules.Request{Fun: "a.count", Context: job}); res.Return != want {
				t.Fatalf("got %v, want %d", res.Return, want)
			}
		}
	}
}

// TestPythonLog logs what a call printed as that call's, without its secrets, also when the next call follows at once in the same
// process, and when something that an earlier call left there prints later.
func TestPythonLog(t *testing.T) {
	h := pythonHost(t, map[string]string{"a.py": `
import sys
import threading

go = threading.Event()
threads = []


def first(password):
    def later():
        go.wait()
        print("left behind " + password)
    threads.append(threading.Thread(target=later))
    threads[0].start()
    for n in range(2000):
        print("first %d %s" % (n, password))
    sys.stderr = None
    sys.stdout.write("unfinished " + password)
    return __context__.setdefault("n", 1)


def second():
    print("second")
    go.set()
    threads[0].join()
    return __context__["n"]
`})
	job := &modules.Context{}
	for _, req := range []modules.Request{{Fun: "a.first", Kwargs: map[string]any{"password": "s3cret"}, Context: job}, {Fun: "a.second", Context: job}} {
		if res := h.reg.Run(t.Context(), h.env, req); res.Return != int64(1) {
			t.Fatalf("%s: %v", req.Fun, res.Return)
		}
	}
	var got []string
	for line := range strings.Lines(h.log.String()) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), "level=INFO msg="); ok {
			got = append(got, text)
		}
	}
	var want []string
	for n := range 2000 {
		want = append(want, fmt.Sprintf(`"first %d **********" fun=a.first jid=""`, n))
	}
	want = append(want, `"unfinished **********" fun=a.first jid=""`, `second fun=a.second jid=""`, `"left behind **********" fun=a.second jid=""`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPythonCancel(t *testing.T) {
	h := pythonHost(t, map[string]string{"a.py": "import time\ndef wait():\n    yield 1\n    time.sleep(600)\n"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res := h.reg.Run(ctx, h.env, modules.Request{Fun: "a.wait", Progress: func(any) { cancel() }})
	if got := fmt.Sprint(res.Return); !strings.Contains(got, "cannot finish a.wait: context canceled") {
		t.Errorf("got %v", got)
	}
	if pids := h.env.Runner.(*runcmd.Runner).PIDs(); len(pids) != 0 {
		t.Errorf("%v live on", pids)
	}
}

func TestPythonReload(t *testing.T) {
	h := pythonHost(t, map[string]string{"a.py": "def f():\n    return 1\n"})
	if got := h.call("a.f").Return; got != int64(1) {
		t.Fatalf("got %v", got)
	}
	h.put("a.py", 0o644, "def f():\n    return 'changed'\n")
	if got := h.call("a.f").Return; got != "changed" {
		t.Errorf("got %v", got)
	}
	h.put("native.py", 0o644, "def echo(x):\n    return 'replaced'\n")
	if got := h.call("native.echo", "x").Return; got != "replaced" {
		t.Errorf("got %v", got)
	}
	path := h.put("a.py", 0o644, "def f():\n    return 3\n")
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(h.call("a.f").Return); !strings.Contains(got, "a.py is writable by everybody") {
		t.Errorf("got %v", got)
	}
}

// TestPythonFromMasters refuses code where a master may have put it.
func TestPythonFromMasters(t *testing.T) {
	h := pythonHost(t, map[string]string{"a.py": "def f():\n    return 1\n"})
	h.env.Config()["extension_modules"] = h.dir
	if got := h.call("a.f").Return; got != "'a.f' is not available." {
		t.Errorf("got %v", got)
	}
	if !strings.Contains(h.log.String(), "is where code from masters is kept") {
		t.Errorf("log:\n%s", h.log)
	}
}

func TestNoPython(t *testing.T) {
	h := pythonHost(t, map[string]string{"a.py": "def f():\n    return 1\n"})
	h.env.Config()["brine_python"] = "python0"
	if got := h.call("a.f").Return; got != "'a' __virtual__ returned False: cannot use "+h.dir+"/a.py: there is no Python interpreter: python0" {
		t.Errorf("got %v", got)
	}
}

// TestReservedNames: arguments may have any name, also those that the bridge itself uses, on every way: from outside, between files,
// to functions of the program, and to utils.
func TestReservedNames(t *testing.T) {
	h := pythonHost(t, map[string]string{
		"taking.py": "def given(**kw):\n    return {k: v for k, v in kw.items() if not k.startswith('__pub')}\n\n\ndef named(name, self=0, args=0, kwargs=0, fun=0):\n" +
			"    return [name, self, args, kwargs, fun]\n",
		"asking.py":        "def to(fun, names):\n    return __salt__[fun](**names)\n\n\ndef util(names):\n    return __utils__['helping.given'](**names)\n",
		"utils/helping.py": "def given(**kw):\n    return kw\n",
	})
	h.reg.Add(&modules.Module{Name: "kw", Funcs: []modules.Def{{Name: "all", Kwargs: "kwargs", Run: func(_ context.Context, c *modules.Call) (any, error) {
		return c.Keywords, nil
	}}}})
	names := map[string]any{}
	for _, name := range []string{"name", "self", "cls", "args", "kwargs", "fun", "method", "fields", "host", "kind", "module", "message", "type", "id", "value",
		"__id__", "__env__", "test", "function", "key", "default", "exc", "globals", "extra", "protocol", "jid", "saltenv", "timeout", "async", "class"} {
		names[name] = "v of " + name
	}
	for _, c := range []modules.Request{
		{Fun: "taking.given", Kwargs: names}, {Fun: "asking.to", Args: []any{"taking.given", names}}, {Fun: "asking.to", Args: []any{"kw.all", names}},
		{Fun: "asking.util", Args: []any{names}},
	} {
		res := h.reg.Run(t.Context(), h.env, c)
		if diff := cmp.Diff(any(names), res.Return); diff != "" || res.Err != nil {
			t.Errorf("%s %v: %v\n%s", c.Fun, c.Args, res.Err, diff)
		}
	}
	want := any([]any{"n", "s", "a", "k", "f"})
	given := map[string]any{"name": "n", "self": "s", "args": "a", "kwargs": "k", "fun": "f"}
	for _, c := range []modules.Request{{Fun: "taking.named", Kwargs: given}, {Fun: "asking.to", Args: []any{"taking.named", given}}} {
		res := h.reg.Run(t.Context(), h.env, c)
		if diff := cmp.Diff(want, res.Return); diff != "" {
			t.Errorf("%s: %v\n%s", c.Fun, res.Err, diff)
		}
	}
}

// TestOwnPrograms: executables in any language are states, grains, beacons, returners and renderers as Python files are.
func TestOwnPrograms(t *testing.T) {
	h := newHost(t)
	describe := `#!/bin/sh
case $1 in
describe) echo '{"protocol": 1, "functions": {"%s": {"doc": "d", "params": [{"name": "%s"}], "args": "a", "kwargs": "k"}}}' ;;
call) %s ;;
esac
`
	dir := filepath.Join(filepath.Dir(h.dir), "kinds")
	opts := h.env.Config()
	opts["module_dirs"] = []any{dir}
	for name, text := range map[string]string{
		"states/motd":     fmt.Sprintf(describe, "present", "name", `echo '{"name": "motd", "result": true, "changes": {}, "comment": "it is there"}'`),
		"grains/rack.sh":  "#!/bin/sh\necho 'rack: {row: 3, place: b}'\n",
		"grains/other":    "#!/bin/sh\necho '{\"disks\": [1, 2]}'\n",
		"grains/bad":      "#!/bin/sh\necho no >&2\nexit 3\n",
		"beacons/door":    fmt.Sprintf(describe, "beacon", "config", `echo '[{"open": true}]'`),
		"returners/drop":  fmt.Sprintf(describe, "returner", "ret", `cat >`+dir+`/returned; echo null`),
		"renderers/lines": fmt.Sprintf(describe, "render", "template", `echo '{"a": {"test.nop": []}}'`),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	run := func(kind, called, fun string, args ...any) any {
		t.Helper()
		m, reason := modules.FindIn(kind, h.env, called)
		if m == nil || m.Def(fun) == nil {
			t.Fatalf("%s %s.%s: %s", kind, called, fun, reason)
		}
		c, err := h.reg.NewCall(h.env, called+"."+fun, "", nil).Foreign(h.env, nil, m.Def(fun), called+"."+fun, args, nil)
		if err != nil {
			t.Fatal(err)
		}
		v, err := m.Def(fun).Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return pyobj.Plain(v)
	}
	for _, c := range []struct {
		kind, called, fun string
		args              []any
		want              any
	}{
		{modules.KindStates, "motd", "present", []any{"x"}, map[string]any{"name": "motd", "result": true, "changes": map[string]any{}, "comment": "it is there"}},
		{modules.KindBeacons, "door", "beacon", []any{[]any{}}, []any{map[string]any{"open": true}}},
		{modules.KindReturners, "drop", "returner", []any{map[string]any{"id": "m"}}, nil},
		{modules.KindRenderers, "lines", "render", []any{&modules.Template{Text: "x"}}, map[string]any{"a": map[string]any{"test.nop": []any{}}}},
		{modules.KindGrains, "custom", "gather", nil, map[string]any{"rack": map[string]any{"row": int64(3), "place": "b"}, "disks": []any{int64(1), int64(2)}}},
	} {
		if diff := cmp.Diff(c.want, run(c.kind, c.called, c.fun, c.args...)); diff != "" {
			t.Errorf("%s:\n%s", c.kind, diff)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "returned")); err != nil {
		t.Error(err)
	}
}

// TestPythonEndsWhenIdle: there is no Python process before the first call that needs one, and none some seconds after the last.
func TestPythonEndsWhenIdle(t *testing.T) {
	t.Parallel()
	h := pythonHost(t, map[string]string{"a.py": "import os\n\nopen(os.path.join(os.path.dirname(__file__), 'loaded'), 'a').write('x')\n\n" +
		"def pid():\n    return os.getpid()\n"})
	if res := h.call("native.echo", "x"); res.Return != "x" {
		t.Fatalf("native.echo: %v", res.Return)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "loaded")); err == nil {
		t.Error("a call that needs no Python has loaded the modules")
	}
	job := &modules.Context{}
	pid := func() int64 {
		n, _ := h.reg.Run(t.Context(), h.env, modules.Request{Fun: "a.pid", Context: job}).Return.(int64)
		return n
	}
	first := pid()
	if second := pid(); first == 0 || first != second {
		t.Errorf("the calls of one job run in the processes %d and %d", first, second)
	}
	for end := time.Now().Add(10 * idleTime); syscall.Kill(int(first), 0) == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("Python still runs %s after the last call", 10*idleTime)
		}
	}
	if again := pid(); again == 0 || again == first {
		t.Errorf("a call after that runs in the process %d", again)
	}
}
