//go:build interop

package states_test

import (
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
	_ "github.com/brine-salt/brine/modules/all"
	"github.com/brine-salt/brine/states"
	_ "github.com/brine-salt/brine/states/all"
)

// The differential tests of the state system: stock Salt and ours do the same on the same host, with the same configuration,
// grains and pillar, and must answer the same. Environment: BRINE_SALT_3007 names the virtual environment of stock Salt.
//
// TestStockStates runs state functions. The cases are testdata/stock/*.yaml:
//
//   - state: file.managed         # which state
//     name: '@DIR@/x'             # its name, which is also its id
//     args: {contents: hello}     # its arguments, requisites and conditions
//     sls: |                      # or, instead of these three, a whole SLS file
//     providers: {pkg: yumpkg}    # modules behind names for this case, whatever the host is
//     grains: {os: Fedora}        # grains over those of the host
//     opts: {x: y}                # options over those of the minion
//     setup: echo x > file        # shell, before each of the two sides, in a fresh scratch directory
//     check: cat file             # shell, after each pass; what it prints is compared as well
//     passes: [test, real, again] # what to do; this is the default: in test mode, for real, for real once more. Any name will do;
//     # those that begin with test are in test mode
//     before: {again: rm file}    # shell, before a pass
//     ignore: {comment: why}      # parts of the states' answers not to compare (changes:x reaches down), with the reason
//     differs: why                # the sides must differ, for this reason; then ours must have "want" if given, the last pass's result and comment
//
// In all texts, @DIR@ is the scratch directory (@DIR@/../x509 and @DIR@/../gpg have the keys and certificates of the oracle of the execution modules), and @REDIS@, @MYSQL@, … are real servers (testserver.Servers). Cases that change the host (users, files below /etc, addresses …) are in
// testdata/stock/host: they run as root in namespaces of their own with fresh layers over the host's directories for each side
// (internal/testkit/privatehost), and each pass is a job of its own. Those in testdata/stock/clients have a
// stock process with libraries that Salt does not bring; those of docker a Docker daemon (testserver.Docker), and ids and times are masked
// in their answers. TestStockTrees compiles and runs whole trees, see trees_test.go.

// stock is stock Salt's side of the cases, and what both sides have in common.
type stock struct {
	*oracle.Process
	*minion
	cases oracle.Cases
	host  *privatehost.Host // nil where cases leave the host alone

	servers *testserver.Servers // those that cases ask for

	book     *oracle.Book // stock's answers that are kept; nil keeps none
	recorder *oracle.Recorder
}

func startStock(t *testing.T) *stock {
	t.Helper()
	scratch := newScratch(t)
	s := &stock{Process: oracle.Start(t, "states.py", scratch)}
	s.recorder = &oracle.Recorder{Real: &runcmd.Runner{}, Dir: filepath.Join(scratch, "work"), Names: s.Names()}
	s.minion = &minion{scratch: scratch, known: oracle.Minion{Opts: s.Opts, Grains: s.Grains, Pillar: s.Pillar}, runner: s.recorder}
	return s
}

// theirs calls a function in stock Salt.
func (s *stock) theirs(t *testing.T, fun string, args []any, kwargs, opts map[string]any) answer {
	t.Helper()
	a := s.Ask(t, map[string]any{"fun": fun, "args": args, "kwargs": kwargs, "opts": opts, "bus": s.bus})
	return answer{Value: tidy(a.Value), Error: a.Error, Message: tidyText(a.Message), Retcode: a.Retcode}
}

func TestStockStates(t *testing.T) {
	match := oracle.Chosen()
	covered := map[string]bool{}
	load := func(pattern, dir string) (chosen []stateCase) {
		for _, c := range loadStateCases(t, pattern, dir) {
			covered[c.state] = true
			for _, word := range strings.FieldsFunc(c.sls, func(r rune) bool { return strings.ContainsRune(" \n:{}[],'\"", r) }) {
				covered[word] = true
			}
			if match.MatchString(c.name) {
				chosen = append(chosen, c)
			}
		}
		return chosen
	}
	const plain = "testdata/stock/*.yaml"
	if privatehost.Inside() {
		h := privatehost.New(t)
		h.Fresh(t)
		s := startStock(t)
		h.Keep, s.host = s.PID, h
		s.recorder.Layers = h.Layers()
		s.openBook(t, hostAnswers, hostCases)
		s.runCases(t, func(dir string) []stateCase { return load(hostCases, dir) })
		s.book.Save(t)
		h.Undo(t)
		return
	}
	if len(load(hostCases, "")) > 0 {
		oracle.InHost(t, hostAnswers)
	}
	var known map[string]any // the grains
	for _, pattern := range []string{plain, clients} {
		chosen := load(pattern, "")
		if len(chosen) == 0 {
			continue
		}
		servers := &testserver.Servers{T: t}
		if pattern == clients {
			t.Setenv("BRINE_CLIENTS", "1")
			if slices.ContainsFunc(chosen, func(c stateCase) bool { return c.file == "docker" }) {
				oracle.LendDocker(t, servers)
			}
		}
		s := startStock(t)
		s.servers, known = servers, s.Grains
		if pattern == plain {
			s.KeepMinion(t, answers+"/minion.json")
			s.openBook(t, answers, plain)
		} else {
			s.openBook(t, clientAnswers, clients)
		}
		s.runCases(t, func(dir string) []stateCase { return load(pattern, dir) })
		s.book.Save(t)
	}
	if !oracle.All() {
		return
	}
	for _, m := range states.Default().Modules(&modules.Env{Grains: func() map[string]any { return known }}) {
		if m.Called() == "salt" {
			continue // orchestration is compared on a master, in package interop
		}
		for _, d := range m.Funcs {
			if full := m.Called() + "." + d.Name; !covered[full] && !strings.HasPrefix(d.Name, "mod_") {
				t.Errorf("%s has no case", full)
			}
		}
	}
}

// openBook opens the kept answers to the cases of some files.
func (s *stock) openBook(t *testing.T, dir, pattern string) {
	t.Helper()
	s.book = oracle.OpenBook(t, dir)
	for _, c := range loadStateCases(t, pattern, filepath.Join(s.Scratch, "work")) {
		s.book.Know(c.file, c.key)
	}
}

func (s *stock) runCases(t *testing.T, cases func(dir string) []stateCase) {
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
		s.recorder.Names = s.Names(v.Names()...)
		s.cases.Run(t, c.name, s.Process, func(t *testing.T) { s.compare(t, c, dir) })
	}
	s.cases.Report(t)
}

func (s *stock) compare(t *testing.T, c stateCase, dir string) {
	fresh := func(setup func(testing.TB, string)) {
		if s.host != nil {
			s.host.Fresh(t)
			oracle.PlainHost(t)
		}
		setup(t, c.setup)
	}
	theirs := s.passes(t, c, dir, s.host != nil, func() {
		fresh(func(t testing.TB, setup string) { oracle.Fresh(t, dir, setup) })
	}, s.theirs)
	ours := s.passes(t, c, dir, s.host != nil, func() { fresh(s.recorder.Setup) }, s.ours)
	if c.file == "docker" {
		mask(theirs)
		mask(ours)
	}
	for pass, a := range theirs {
		if list, ok := a.Value.([]any); ok && c.sls != "" {
			t.Errorf("the SLS of pass %s does not compile: %v", pass, list)
		}
	}
	c.judge(t, theirs, ours)
	if s.book == nil {
		return
	}
	kept := oracle.Kept{Key: c.key, Case: c.what()}
	if whole := s.recorder.Take(&kept, c.check); whole && !c.servers {
		kept.Stock = oracle.Pack(keptAnswers(theirs), s.recorder.Names)
	}
	s.book.Keep(t, c.file, kept)
}

// TestStockStateFunctions compares the declarations: each module has all functions of the stock module but those that a
// comment calls absent, and each takes the same arguments.
func TestStockStateFunctions(t *testing.T) {
	t.Setenv("BRINE_CLIENTS", "1") // with the modules that need them
	s := startStock(t)
	e := &modules.Env{Grains: func() map[string]any { return s.Grains }}
	a := s.theirs(t, "sys.state_argspec", []any{"*"}, nil, nil)
	byModule := map[string]map[string]any{}
	all, _ := a.Value.(map[string]any)
	for fun, spec := range all {
		mod, _, _ := strings.Cut(fun, ".")
		if byModule[mod] == nil {
			byModule[mod] = map[string]any{}
		}
		byModule[mod][fun] = spec
	}
	for _, m := range states.Default().Modules(e) {
		theirs := byModule[m.Called()]
		if len(theirs) == 0 {
			t.Errorf("stock Salt has no state module %s here: %v, %s", m.Called(), a.Error, a.Message)
			continue
		}
		absent := oracle.Absent(t, m.Called(), oracle.Sources(t, "*/*.go", m.Name)...)
		for i := range m.Funcs {
			fun := m.Called() + "." + m.Funcs[i].Name
			spec, ok := theirs[fun]
			delete(theirs, fun)
			if !ok {
				t.Errorf("stock Salt has no state %s", fun)
			} else if diff := cmp.Diff(spec, oracle.Plain(m.Funcs[i].Argspec())); diff != "" && fun != "user.present" { // which has selinux_user more
				t.Errorf("%s: stock (-) and ours (+):\n%s", fun, diff)
			}
		}
		for fun := range theirs {
			if !absent[fun] {
				t.Errorf("state %s is neither there nor called absent", fun)
			}
		}
	}
}

// keptAnswers are the answers to all passes as they are kept.
func keptAnswers(passes map[string]answer) map[string]any {
	all := map[string]any{}
	for pass, a := range passes {
		m := map[string]any{"value": a.Value}
		if a.Error != "" || a.Message != "" {
			m = map[string]any{"error": a.Error, "message": a.Message}
		}
		if a.Retcode != 0 {
			m["retcode"] = a.Retcode
		}
		if a.Check != "" {
			m["check"] = a.Check
		}
		all[pass] = m
	}
	return all
}
