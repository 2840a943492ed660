//go:build interop

package modules_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/privatehost"
	"github.com/brine-salt/brine/internal/runcmd"
	"github.com/brine-salt/brine/internal/testserver"
	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states/render"
)

// The differential test: each case calls a function of stock Salt and ours on the same host, with the same configuration,
// grains and pillar, and compares value, return code or error. The cases are testdata/stock/*.yaml:
//
//   - fun: cmd.run                # what to call
//     providers: {pkg: yumpkg}    # modules behind names for this case, whatever the host is
//     grains: {os: Fedora}        # grains over those of the host
//     args: [echo hello]
//     kwargs: {cwd: /}
//     pub: true                   # as part of a job: the function gets __pub_ fields
//     setup: echo x > file        # shell, before each of the two calls, in a fresh scratch directory
//     check: cat file             # shell, after each of the two calls; what it prints is compared as well
//     ignore: {pid: it differs}   # parts of the value not to compare (a:b:0 reaches down), with the reason
//     differs: why                # the two must differ, for this reason; then ours must be "want" or "error" if given
//     type: true                  # compare only that both succeed with the same type
//     then: [{fun: …, args: …}]   # further calls of the same job; their values are compared as well
//
// In args, kwargs and shell texts, @DIR@ is the scratch directory and @REDIS@, @MYSQL@, … are real servers (testserver.Servers). Environment: BRINE_SALT_3007 names the virtual environment.
//
// Cases that change the host (users, mounts, addresses, files below /etc …) are in testdata/stock/host/*.yaml. They run as root
// in a copy of this test that has mounts, network, processes, host name and message queues of its own. Before each of the two
// calls every directory a case may change gets a fresh layer (overlayfs; internal/privatehost lists them), the mounts and the
// processes that the last call left are gone, and setup makes the fixture; nothing reaches the machine. Only the network, where
// just lo is up, stays as the last call left it: a case about it begins with a setup that empties it. Below / itself nothing
// can be made. A case that does not change the host belongs in testdata/stock, where it is cheaper.

var only = flag.String("stock", "", "run only the cases whose name matches this regular expression")

// coverExempt are functions without a case, with the reason.
var coverExempt = map[string]string{
	"cmd.run_chroot": "mounts dev, proc and sys into a whole system of its own; tested with a fake mount module instead",
}

type stock struct {
	in      io.WriteCloser
	out     *bufio.Reader
	scratch string
	pid     int
	host    *privatehost.Host // nil where cases leave the host alone
	newJob  func()            // called before our side of each case

	opts, grains, pillar map[string]any
}

type stockAnswer struct {
	Value   any    `json:"value"`
	Error   string `json:"error"`
	Message string `json:"message"`
	Retcode any    `json:"retcode"`
}

func startStock(t *testing.T) *stock {
	t.Helper()
	venv := os.Getenv("BRINE_SALT_3007")
	if venv == "" {
		t.Fatal("BRINE_SALT_3007 must name a virtual environment with stock Salt 3007")
	}
	s := &stock{scratch: t.TempDir()}
	s.configure(t)
	oracle, err := filepath.Abs("testdata/stock/oracle.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(venv, "bin", "python"), oracle, s.scratch)
	cmd.Dir = "/"
	logFile, err := os.Create(filepath.Join(s.scratch, "oracle.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = logFile
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
		logFile.Close()
		if t.Failed() {
			text, _ := os.ReadFile(logFile.Name())
			t.Logf("stock Salt's log ends with:\n%s", text[max(0, len(text)-3000):])
		}
	})
	s.pid = cmd.Process.Pid
	s.in, s.out = in, bufio.NewReaderSize(out, 1<<20)
	var hello map[string]any
	s.read(t, &hello)
	s.opts, s.grains, s.pillar = unwrap(hello["opts"]).(map[string]any), unwrap(hello["grains"]).(map[string]any),
		unwrap(hello["pillar"]).(map[string]any)
	return s
}

// configure writes a minion that has everything below the scratch directory.
func (s *stock) configure(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("testdata/stock/minion.conf")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.scratch, "conf", "minion"), strings.ReplaceAll(string(text), "@SCRATCH@", s.scratch))
	if err := os.CopyFS(s.scratch, os.DirFS("testdata/stock/root")); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func (s *stock) read(t *testing.T, into any) {
	t.Helper()
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("stock Salt died: %v", err)
	}
	if err := json.Unmarshal(line, into); err != nil {
		t.Fatalf("stock Salt answered %q: %v", line, err)
	}
}

// call asks stock; first tells that a job begins, which finds nothing of the last one in __context__.
func (s *stock) call(t *testing.T, c stockCase, pub map[string]any, first bool) outcome {
	t.Helper()
	q, err := json.Marshal(map[string]any{"fun": c.fun, "providers": c.providers, "grains": c.grains, "args": c.args, "kwargs": c.kwargs, "pub": pub, "first": first})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.in.Write(append(q, '\n')); err != nil {
		t.Fatal(err)
	}
	var a stockAnswer
	s.read(t, &a)
	o := outcome{Value: unwrap(a.Value), ErrorType: a.Error, Message: a.Message}
	if strings.HasPrefix(c.fun, "x509.") && (strings.HasSuffix(a.Error, "DeserializationError") || strings.HasSuffix(a.Error, "Password")) {
		o.ErrorType = "SaltInvocationError" // which these exceptions of x509 are
	}
	if n, ok := a.Retcode.(float64); ok {
		o.Retcode = int(n)
	}
	if o.ErrorType != "" {
		o.Retcode = 0
	}
	return o
}

// unwrap undoes the oracle's wrapping.
func unwrap(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = unwrap(v[i])
		}
		return v
	case map[string]any:
		kind, ok := v["__py__"].(string)
		if !ok {
			for k := range v {
				v[k] = unwrap(v[k])
			}
			return v
		}
		text, _ := v["text"].(string)
		switch kind {
		case "int":
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				return n
			}
			return text
		case "float":
			f, _ := strconv.ParseFloat(text, 64)
			return f
		case "bytes":
			b, _ := hex.DecodeString(v["hex"].(string))
			return b
		case "map":
			m := map[any]any{}
			for _, item := range v["items"].([]any) {
				pair := item.([]any)
				m[unwrap(pair[0])] = unwrap(pair[1])
			}
			return m
		}
		return "<" + kind + "> " + text
	}
	return v
}

type outcome struct {
	Value              any
	ErrorType, Message string
	Retcode            int
	Check              string
	Then               []outcome
}

type stockCase struct {
	name, fun, setup, check, differs string
	args                             []any
	kwargs, ignore                   map[string]any
	providers, grains                map[string]any
	pub, typeOnly                    bool
	want                             any
	hasWant                          bool
	wantError                        string
	then                             []stockCase
}

func loadCases(t *testing.T, pattern, dir string) []stockCase {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var cases []stockCase
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		v, err := yaml.Parse([]byte(strings.ReplaceAll(string(text), "@DIR@", dir)), f)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range v.([]any) {
			m, ok := x.(map[string]any)
			if !ok {
				t.Fatalf("%s: case %d is not a map", f, i)
			}
			cases = append(cases, oneCase(t, fmt.Sprintf("%s/%d", strings.TrimSuffix(filepath.Base(f), ".yaml"), i), m))
		}
	}
	// Putting other modules behind a name leaves traces in the long-lived stock process: those cases come last.
	foreign := func(c stockCase) int {
		if c.providers != nil || c.grains != nil {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(cases, func(a, b stockCase) int { return foreign(a) - foreign(b) })
	return cases
}

func oneCase(t *testing.T, where string, m map[string]any) stockCase {
	t.Helper()
	text := func(key string) string { s, _ := m[key].(string); return s }
	c := stockCase{fun: text("fun"), setup: text("setup"), check: text("check"), differs: text("differs"), wantError: text("error")}
	c.args, _ = m["args"].([]any)
	c.kwargs, _ = m["kwargs"].(map[string]any)
	c.ignore, _ = m["ignore"].(map[string]any)
	c.providers, _ = m["providers"].(map[string]any)
	c.grains, _ = m["grains"].(map[string]any)
	c.pub, _ = m["pub"].(bool)
	c.typeOnly, _ = m["type"].(bool)
	c.want, c.hasWant = m["want"]
	if then, ok := m["then"].([]any); ok {
		for i, x := range then {
			c.then = append(c.then, oneCase(t, fmt.Sprintf("%s.%d", where, i), x.(map[string]any)))
		}
	}
	c.name = fmt.Sprintf("%s/%s", where, c.fun)
	for k := range m {
		if !slices.Contains([]string{"fun", "args", "kwargs", "setup", "check", "ignore", "differs", "pub", "type", "want", "error", "then", "providers", "grains"}, k) {
			t.Fatalf("%s: unknown key %s", c.name, k)
		}
	}
	return c
}

func TestStock(t *testing.T) {
	match := regexp.MustCompile(*only)
	covered := map[string]bool{}
	load := func(pattern, dir string) (chosen []stockCase) {
		for _, c := range loadCases(t, pattern, dir) {
			covered[c.fun] = true
			for _, then := range c.then {
				covered[then.fun] = true
			}
			if match.MatchString(c.name) {
				chosen = append(chosen, c)
			}
		}
		return chosen
	}
	hosts := func(dir string) []stockCase { return load("testdata/stock/host/*.yaml", dir) }
	if privatehost.Inside() {
		runInHost(t, hosts)
		return
	}
	if len(hosts("")) > 0 {
		t.Run("host", func(t *testing.T) { privatehost.Enter(t, "-test.run=^TestStock$", "-stock="+*only) })
	}
	if len(load("testdata/stock/*.yaml", "")) == 0 {
		return
	}
	s := startStock(t)
	dir := filepath.Join(s.scratch, "work")
	r := modules.NewRegistry(stockModules()...)
	e := s.env(t)
	v := &testserver.Servers{T: t}
	for _, c := range load("testdata/stock/*.yaml", dir) {
		c.fill(v)
		t.Run(c.name, func(t *testing.T) { s.compare(t, r, e, c, dir) })
	}
	if *only != "" {
		return
	}
	for _, f := range r.Functions(e) {
		if !covered[f] && coverExempt[f] == "" {
			t.Errorf("%s has no case", f)
		}
	}
}

// env is our side of the same minion.
func (s *stock) env(t *testing.T) *modules.Env {
	t.Helper()
	e := &modules.Env{
		ID:     s.opts["id"].(string),
		Opts:   func() map[string]any { return s.opts },
		Grains: func() map[string]any { return s.grains },
		Pillar: func() map[string]any { return s.pillar },
		Runner: &runcmd.Runner{},

		Templates: render.Render,
	}
	s.parts(t, e)
	return e
}

func (s *stock) compare(t *testing.T, r *modules.Registry, e *modules.Env, c stockCase, dir string) {
	pub := map[string]any(nil)
	if c.pub {
		pub = map[string]any{"fun": c.fun, "jid": "20250102030405678901", "tgt": "salt-call"}
	}
	s.fresh(t, dir, c.setup)
	theirs := s.call(t, c, pub, true)
	for _, then := range c.then {
		then.providers, then.grains = c.providers, c.grains
		next := s.call(t, then, pub, false)
		theirs.Then = append(theirs.Then, next)
	}
	theirs.Check = shell(t, dir, c.check)
	s.fresh(t, dir, c.setup)
	s.newJob()
	job := &modules.Context{}
	e = c.pose(e)
	ours := call(r, e, c, pub, job)
	for _, then := range c.then {
		ours.Then = append(ours.Then, call(r, e, then, pub, job))
	}
	ours.Check = shell(t, dir, c.check)
	for path := range c.ignore {
		theirs.Value, ours.Value = without(theirs.Value, strings.Split(path, ":")), without(ours.Value, strings.Split(path, ":"))
	}
	if c.typeOnly && theirs.ErrorType == "" {
		theirs.Value, ours.Value = kind(theirs.Value), kind(ours.Value)
	}
	diff := cmp.Diff(theirs, ours)
	switch {
	case theirs.ErrorType == "KeyError" && theirs.Message == "'"+c.fun+"'" && c.differs == "":
		t.Errorf("stock Salt has no function %s here", c.fun)
	case c.differs == "" && diff != "":
		t.Errorf("stock (-) and ours (+):\n%s", diff)
	case c.differs != "" && diff == "":
		t.Errorf("no difference, though the case says: %s", c.differs)
	case c.hasWant && !cmp.Equal(c.want, ours.Value):
		t.Errorf("ours: %s", cmp.Diff(c.want, ours.Value))
	case c.wantError != "" && ours.Message != c.wantError:
		t.Errorf("our error is %q", ours.Message)
	}
}

// pose is our side of the minion with the providers and grains of the case.
func (c stockCase) pose(e *modules.Env) *modules.Env {
	if c.providers == nil && c.grains == nil {
		return e
	}
	over := func(m map[string]any, more map[string]any) map[string]any {
		m = maps.Clone(m)
		maps.Copy(m, more)
		return m
	}
	had, _ := e.Opt("providers").(map[string]any)
	opts, grains := over(e.Config(), map[string]any{"providers": over(had, c.providers)}), over(e.GrainData(), c.grains)
	posed := *e
	posed.Opts, posed.Grains = func() map[string]any { return opts }, func() map[string]any { return grains }
	return &posed
}

func kind(v any) string { return modules.TypeName(v) }

func call(r *modules.Registry, e *modules.Env, c stockCase, pub map[string]any, job *modules.Context) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	res := r.Run(ctx, e, modules.Request{Fun: c.fun, Args: c.args, Kwargs: c.kwargs, Pub: pub, Context: job})
	o := outcome{Value: plain(res.Return), Retcode: job.Retcode()}
	if res.Err != nil {
		o.Value, o.Retcode = nil, 0
		o.ErrorType, o.Message = pythonName(res.Err)
	}
	return o
}

// plain gives a value the types that come out of the oracle.
func plain(v any) any {
	switch v := v.(type) {
	case uint64:
		return strconv.FormatUint(v, 10)
	case time.Time:
		return v.Format("<datetime> 2006-01-02 15:04:05")
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for k := range v {
			m[k] = plain(v[k])
		}
		return m
	}
	return v
}

// pythonName is the exception that stands for one of our errors.
func pythonName(err error) (name, text string) {
	var (
		exec    *modules.ExecError
		usage   *modules.UsageError
		typ     *modules.TypeError
		missing *modules.MissingCommandError
		absent  *modules.NotAvailableError
		python  *modules.PythonError
	)
	switch {
	case errors.As(err, &absent):
		return "KeyError", "'" + absent.Fun + "'"
	case errors.As(err, &exec):
		return "CommandExecutionError", err.Error()
	case errors.As(err, &usage):
		return "SaltInvocationError", err.Error()
	case errors.As(err, &typ):
		return "TypeError", err.Error()
	case errors.As(err, &python):
		return python.Type[strings.LastIndexByte(python.Type, '.')+1:], python.Msg
	case errors.As(err, &missing):
		return "CommandNotFoundError", err.Error()
	}
	return "<go>", err.Error()
}

// without takes the part at a path out of a value.
func without(v any, path []string) any {
	switch m := v.(type) {
	case map[string]any:
		for k := range m {
			if path[0] != k && path[0] != "*" {
				continue
			}
			if len(path) == 1 {
				delete(m, k)
			} else {
				m[k] = without(m[k], path[1:])
			}
		}
	case []any:
		for i := range m {
			if path[0] != strconv.Itoa(i) && path[0] != "*" {
				continue
			}
			if len(path) == 1 {
				m[i] = nil
			} else {
				m[i] = without(m[i], path[1:])
			}
		}
	}
	return v
}

func (s *stock) fresh(t *testing.T, dir, setup string) {
	t.Helper()
	if s.host != nil {
		s.host.Fresh(t)
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	shell(t, dir, setup)
}

func shell(t *testing.T, dir, script string) string {
	t.Helper()
	if script == "" {
		return ""
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// argspecExempt are functions whose declaration differs from Salt's, with the reason.
var argspecExempt = map[string]string{
	"pillar.get":   "the default is a marker that only Python has",
	"pillar.fetch": "the default is a marker that only Python has",
}

// TestStockFunctions compares the declarations: each module has all functions of the stock module, except those that its
// comment on compatibility calls absent, and each takes the same arguments.
func TestStockFunctions(t *testing.T) {
	s := startStock(t)
	r := modules.NewRegistry(stockModules()...)
	e := s.env(t)
	shells, _ := s.grains["shell"].(string)
	for _, m := range r.Modules(e) {
		theirs, ok := s.call(t, stockCase{fun: "sys.argspec", args: []any{m.Called()}}, nil, true).Value.(map[string]any)
		if !ok || len(theirs) == 0 {
			t.Errorf("stock Salt has no module %s", m.Called())
			continue
		}
		absent := absences(t, m.Name, m.Called())
		for i := range m.Funcs {
			fun := m.Called() + "." + m.Funcs[i].Name
			spec, ok := theirs[fun]
			delete(theirs, fun)
			if !ok && !absent[fun] {
				t.Errorf("stock Salt has no function %s", fun)
			}
			if diff := cmp.Diff(spec, replaceShell(m.Funcs[i].Argspec(), shells)); diff != "" && argspecExempt[fun] == "" && ok {
				t.Errorf("%s: stock (-) and ours (+):\n%s", fun, diff)
			}
		}
		for fun := range theirs {
			if !absent[fun] {
				t.Errorf("%s is neither there nor called absent", fun)
			}
		}
	}
}

// replaceShell puts the shell of stock Salt's environment where ours declares /bin/sh.
func replaceShell(v any, shell string) any {
	m := plain(v).(map[string]any)
	list, _ := m["defaults"].([]any)
	for i, x := range list {
		if x == "/bin/sh" {
			list[i] = shell
		}
	}
	return m
}

// absences reads "<function> is absent: <reason>" in the comments of a module's package, and "<function> is added: <reason>" for
// those that a later Salt has.
func absences(t *testing.T, module, called string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	line := regexp.MustCompile(`(?m)^// ([a-z_.]+(?:, [a-z_.]+)*) (?:is|are) (?:absent|added): .+$`)
	dirs, err := filepath.Glob("*/defs.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		text, err := os.ReadFile(d)
		if err != nil || !strings.Contains(string(text), `Name: "`+module+`"`) {
			continue
		}
		files, _ := filepath.Glob(filepath.Dir(d) + "/*.go")
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range line.FindAllStringSubmatch(string(text), -1) {
				for _, fun := range strings.Split(found[1], ", ") {
					if !strings.Contains(fun, ".") {
						fun = called + "." + fun
					}
					out[fun] = true
				}
			}
		}
	}
	return out
}
