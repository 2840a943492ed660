//go:build interop

package modules_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/testkit/privatehost"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/interop/oracle"
	"github.com/brine-salt/brine/modules"
)

// The differential test: each case calls a function of stock Salt and ours on the same host, with the same configuration,
// grains and pillar, and compares value, return code or error. The cases are testdata/stock/*.yaml:
//
//   - fun: cmd.run                # what to call
//     providers: {pkg: yumpkg}    # modules behind names for this case, whatever the host is
//     grains: {os: Fedora}        # grains over those of the host
//     opts: {x: y}                # options over those of the minion
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
// Cases in testdata/stock/apart have a stock process of their own: those of tls one with the pyOpenSSL that this module needs, beside
// which others fail. So have those in testdata/stock/clients: it has libraries that Salt does not bring, among them docker-py, for which
// there is a Docker daemon of its own (testserver.Docker). In the answers of docker, ids and times are masked.
//
// Cases that change the host (users, mounts, addresses, files below /etc …) are in testdata/stock/host/*.yaml. They run as root
// in a copy of this test that has mounts, network, processes, host name and message queues of its own. Before each of the two
// calls every directory a case may change gets a fresh layer (overlayfs; internal/testkit/privatehost lists them), the mounts and the
// processes that the last call left are gone, and setup makes the fixture; nothing reaches the machine. Only the network, where
// just lo is up, stays as the last call left it: a case about it begins with a setup that empties it. Below / itself nothing
// can be made. A case that does not change the host belongs in testdata/stock, where it is cheaper.

// coverExempt are functions without a case, with the reason.
var coverExempt = map[string]string{
	"cmd.run_chroot": "mounts dev, proc and sys into a whole system of its own; tested with a fake mount module instead",
}

// stock is stock Salt's side of the cases, and what both sides have in common.
type stock struct {
	*oracle.Process
	cases  oracle.Cases
	host   *privatehost.Host // nil where cases leave the host alone
	newJob func()            // called before our side of each case

	servers *testserver.Servers // those that cases ask for

	book     *oracle.Book // stock's answers that are kept; nil keeps none
	recorder *oracle.Recorder
	names    *strings.Replacer
}

func startStock(t *testing.T) *stock {
	t.Helper()
	scratch := t.TempDir()
	oracle.Configure(t, scratch, "testdata/stock/minion.conf")
	t.Setenv("AUGEAS_ROOT", scratch) // Augeas reads all files of a host that it knows
	if err := os.CopyFS(scratch, os.DirFS("testdata/stock/root")); err != nil {
		t.Fatal(err)
	}
	return &stock{Process: oracle.Start(t, "functions.py", scratch)}
}

// call asks stock; first tells that a job begins, which finds nothing of the last one in __context__.
func (s *stock) call(t *testing.T, c stockCase, pub map[string]any, first bool) outcome {
	t.Helper()
	a := s.Ask(t, map[string]any{"fun": c.fun, "providers": c.providers, "grains": c.grains, "opts": c.opts, "args": c.args, "kwargs": c.kwargs, "pub": pub, "first": first})
	o := outcome{Value: a.Value, ErrorType: a.Error, Message: speed.ReplaceAllString(a.Message, " a download"), Retcode: a.Retcode}
	if strings.HasPrefix(c.fun, "x509.") && (strings.HasSuffix(a.Error, "DeserializationError") || strings.HasSuffix(a.Error, "Password")) {
		o.ErrorType = "SaltInvocationError" // which these exceptions of x509 are
	}
	if o.ErrorType != "" {
		o.Retcode = 0
	}
	return o
}

func TestStock(t *testing.T) {
	match := oracle.Chosen()
	covered := map[string]bool{}
	const plain = "testdata/stock/*.yaml"
	load := func(pattern, dir string) (chosen []stockCase) {
		var cases []stockCase
		if pattern == plain {
			cases = plainCases(t, dir)
		} else {
			cases = loadCases(t, pattern, dir)
		}
		for _, c := range cases {
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
	hosts := func(dir string) []stockCase { return keyed(load(hostCases, dir), dir) }
	if privatehost.Inside() {
		runInHost(t, hosts)
		return
	}
	if len(hosts("")) > 0 {
		oracle.InHost(t, hostAnswers)
	}
	r := modules.NewRegistry(stockModules()...)
	var e *modules.Env
	for _, pattern := range []string{plain, clients, apart + "tls.yaml"} {
		if chosen := load(pattern, ""); len(chosen) > 0 {
			servers := &testserver.Servers{T: t}
			lend(t, pattern, chosen, servers)
			s := startStock(t)
			s.servers = servers
			e = s.env(t)
			dir := filepath.Join(s.Scratch, "work")
			var known []stockCase
			switch pattern {
			case plain:
				s.KeepMinion(t, answers+"/minion.json")
				s.book, known = oracle.OpenBook(t, answers), plainCases(t, dir)
			case clients:
				s.book, known = oracle.OpenBook(t, clientAnswers), keyed(loadCases(t, clients, dir), dir)
			}
			for _, c := range known {
				s.book.Know(c.file, c.key)
			}
			s.runCases(t, r, e, func(dir string) []stockCase { return keyed(load(pattern, dir), dir) })
			if s.book != nil {
				s.book.Save(t)
			}
		}
	}
	if !oracle.All() {
		return
	}
	found := discovered(r)
	for _, f := range r.Functions(e) {
		if !found(f) && !covered[f] && coverExempt[f] == "" {
			t.Errorf("%s has no case", f)
		}
	}
}

// apart is where the cases are that need a stock process of their own.
const apart = "testdata/stock/apart/"

// lend prepares what the next stock process has for the cases of some files.
func lend(t *testing.T, pattern string, chosen []stockCase, servers *testserver.Servers) {
	t.Helper()
	switch pattern {
	case clients:
		t.Setenv("BRINE_CLIENTS", "1")
		if slices.ContainsFunc(chosen, func(c stockCase) bool { return c.file == "docker" }) {
			oracle.LendDocker(t, servers)
		}
	case apart + "tls.yaml":
		t.Setenv("BRINE_OLD_SSL", "1")
	}
}

// discovered tells which functions are not declared, but found on the host: one case for all of them is enough.
func discovered(r *modules.Registry) func(fun string) bool {
	declared, finders := map[string]bool{}, map[string]bool{}
	for _, m := range r.All() {
		finders[m.Called()] = finders[m.Called()] || m.Discover != nil
		for _, d := range m.Funcs {
			declared[m.Called()+"."+d.Name] = true
		}
	}
	return func(fun string) bool {
		module, _, _ := strings.Cut(fun, ".")
		return finders[module] && !declared[fun]
	}
}

func (s *stock) runCases(t *testing.T, r *modules.Registry, e *modules.Env, cases func(dir string) []stockCase) {
	dir := filepath.Join(s.Scratch, "work")
	v := s.servers
	if v == nil {
		v = &testserver.Servers{T: t}
	}
	s.recorder.Servers = v
	last := ""
	for _, c := range cases(dir) {
		if s.book != nil && !s.book.Asks(c.file, c.key) {
			continue
		}
		if !s.cases.Due(t, c.name) {
			continue
		}
		if s.book != nil && c.file != last { // a run that is interrupted keeps what it has
			s.book.Save(t)
			last = c.file
		}
		c.fill(v)
		s.names = s.Names(v.Names()...)
		s.recorder.Names = s.names
		s.cases.Run(t, c.name, s.Process, func(t *testing.T) { s.compare(t, r, e, c, dir) })
	}
	s.cases.Report(t)
}

// env is our side of the same minion.
func (s *stock) env(t *testing.T) *modules.Env {
	t.Helper()
	s.names = s.Names()
	s.recorder = &oracle.Recorder{Real: &runcmd.Runner{}, Dir: filepath.Join(s.Scratch, "work"), Names: s.names}
	e, newJob := ourMinion(s.Scratch, oracle.Minion{Opts: s.Opts, Grains: s.Grains, Pillar: s.Pillar}, s.recorder)
	s.newJob = newJob
	return e
}

func (s *stock) compare(t *testing.T, r *modules.Registry, e *modules.Env, c stockCase, dir string) {
	s.fresh(t, dir, c.setup)
	theirs := s.call(t, c, c.job(), true)
	for _, then := range c.then {
		then.providers, then.grains = c.providers, c.grains
		next := s.call(t, then, c.job(), false)
		theirs.Then = append(theirs.Then, next)
	}
	theirs.Check = oracle.Shell(t, dir, c.check)
	s.freshHost(t)
	s.recorder.Setup(t, c.setup)
	modules.Default().Reset()
	s.newJob()
	ours := ourAnswer(t, r, e, c, dir)
	c.without(&theirs)
	c.without(&ours)
	if c.file == "docker" {
		theirs.mask()
		ours.mask()
	}
	if c.typeOnly && theirs.ErrorType == "" {
		theirs.Value, ours.Value = kind(theirs.Value), kind(ours.Value)
	}
	if theirs.ErrorType == "KeyError" && theirs.Message == "'"+c.fun+"'" && c.differs == "" {
		t.Errorf("stock Salt has no function %s here", c.fun)
		return
	}
	c.judge(t, theirs, ours)
	if strings.HasPrefix(c.name, "random/") && t.Failed() {
		t.Logf("after %s\n%s", c.setup, c.calls())
	}
	s.keep(t, c, theirs)
}

// keep keeps stock's answer beside the case, or compares it with the one that is kept.
func (s *stock) keep(t *testing.T, c stockCase, theirs outcome) {
	t.Helper()
	if s.book == nil {
		return
	}
	kept := oracle.Kept{Key: c.key, Case: c.fun}
	if whole := s.recorder.Take(&kept, c.check); whole && !c.servers {
		kept.Stock = oracle.Pack(theirs.asMap(), s.names)
	}
	s.book.Keep(t, c.file, kept)
}

func (s *stock) fresh(t *testing.T, dir, setup string) {
	t.Helper()
	s.freshHost(t)
	freshDir(t, dir, setup)
}

// freshHost gives the next side of a case a host of its own, if it wants one.
func (s *stock) freshHost(t *testing.T) {
	t.Helper()
	if s.host != nil {
		s.host.Fresh(t)
		oracle.PlainHost(t)
	}
}

// argspecExempt are functions whose declaration differs from Salt's, with the reason.
var argspecExempt = map[string]string{
	"pillar.get":         "the default is a marker that only Python has",
	"pillar.fetch":       "the default is a marker that only Python has",
	"vault.read_secret":  "the default is a marker that only Python has",
	"vault.list_secrets": "the default is a marker that only Python has",
	"user.add":           "selinux_user is not in Salt",
}

// laterArgs are arguments of functions that Salt 3008 has and 3007 has not.
var laterArgs = [...]string{"pillar unmask", "file nostat", "file ignore_ordering", "file ignore_whitespace", "file ignore_comment_characters", "gpg select", "ansible inventories"}

// withoutLater is a declaration without the arguments that came later.
func withoutLater(module string, spec map[string]any) map[string]any {
	args, _ := spec["args"].([]any)
	defaults, _ := spec["defaults"].([]any)
	for _, later := range laterArgs {
		of, name, _ := strings.Cut(later, " ")
		i := slices.Index(args, any(name))
		if of != module || i < 0 {
			continue
		}
		d := i - (len(args) - len(defaults))
		args, defaults = slices.Delete(slices.Clone(args), i, i+1), slices.Delete(slices.Clone(defaults), d, d+1)
		spec["args"], spec["defaults"] = args, defaults
		if len(defaults) == 0 {
			spec["defaults"] = nil
		}
	}
	return spec
}

// TestStockFunctions compares the declarations: each module has all functions of the stock module, except those that its
// comment on compatibility calls absent, and each takes the same arguments.
func TestStockFunctions(t *testing.T) {
	t.Setenv("BRINE_OLD_SSL", "1") // with module tls
	t.Setenv("BRINE_CLIENTS", "1") // and those that need other libraries
	s := startStock(t)
	r := modules.NewRegistry(stockModules()...)
	e := s.env(t)
	shells, _ := s.Grains["shell"].(string)
	found := discovered(r)
	for _, m := range r.Modules(e) {
		theirs, ok := s.call(t, stockCase{fun: "sys.argspec", args: []any{m.Called()}}, nil, true).Value.(map[string]any)
		if !ok || len(theirs) == 0 {
			t.Errorf("stock Salt has no module %s", m.Called())
			continue
		}
		absent := oracle.Absent(t, m.Called(), oracle.Sources(t, "*/defs.go", m.Name)...)
		for name := range m.Names() {
			fun := m.Called() + "." + name
			spec, ok := theirs[fun]
			delete(theirs, fun)
			if !ok && found(fun) {
				continue // stock's second loader does not find the short names that the first one has found
			}
			if !ok && !absent[fun] {
				t.Errorf("stock Salt has no function %s", fun)
			}
			if diff := cmp.Diff(spec, withoutLater(m.Called(), replaceShell(m.Def(name).Argspec(), shells))); diff != "" && argspecExempt[fun] == "" && ok {
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
func replaceShell(v any, shell string) map[string]any {
	m := oracle.Plain(v).(map[string]any)
	list, _ := m["defaults"].([]any)
	for i, x := range list {
		if x == "/bin/sh" {
			list[i] = shell
		}
	}
	return m
}

// asMap is an outcome as it is kept.
func (o outcome) asMap() map[string]any {
	m := map[string]any{}
	if o.ErrorType != "" || o.Message != "" {
		m["error"], m["message"] = o.ErrorType, o.Message
	} else {
		m["value"] = o.Value
	}
	if o.Retcode != 0 {
		m["retcode"] = o.Retcode
	}
	if o.Check != "" {
		m["check"] = o.Check
	}
	if len(o.Then) > 0 {
		list := make([]any, len(o.Then))
		for i, then := range o.Then {
			list[i] = then.asMap()
		}
		m["then"] = list
	}
	return m
}

// calls are the calls of a case, for a failure.
func (c stockCase) calls() string {
	text := fmt.Sprintln(c.fun, c.args, c.kwargs)
	for _, then := range c.then {
		text += then.calls()
	}
	return text
}

// freshDir empties the scratch directory, runs the setup there, and lets the modules look anew which of them suit the host, as
// stock's do for each job.
func freshDir(t *testing.T, dir, setup string) {
	t.Helper()
	oracle.Fresh(t, dir, setup)
	modules.Default().Reset()
}
