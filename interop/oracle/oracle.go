package oracle

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testsalt"
)

// here is this directory, from that of a test in a directory of modules or of states.
var here = sync.OnceValue(func() string {
	up := ""
	for range 4 {
		up = filepath.Join("..", up)
		if _, err := os.Stat(filepath.Join(up, "interop", "oracle")); err == nil {
			break
		}
	}
	return filepath.Join(up, "interop", "oracle")
})

// programs is the directory of programs that stand in for those that need a server; both sides find them before others.
const programs = "bin"

// foundPrograms is the directory of programs that are there in a replay only, never to be run: modules ask whether their
// host has them before they do what takes none of them.
const foundPrograms = "found"

// Process is a running stock minion.
type Process struct {
	// Scratch is the directory that has everything of the minion.
	Scratch string
	// PID is the process.
	PID int
	// Opts, Grains and Pillar are the minion's.
	Opts, Grains, Pillar map[string]any

	in  io.WriteCloser
	out *bufio.Reader

	programs, venv string // directories of programs that stand in for others, and of stock itself
}

// Configure writes the configuration of a minion below its scratch directory, for which @SCRATCH@ stands in the text.
func Configure(t testing.TB, scratch, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, filepath.Join(scratch, "conf", "minion"), strings.ReplaceAll(string(text), "@SCRATCH@", scratch))
}

// Start starts one of the scripts of this package with a scratch directory, until the test ends.
func Start(t testing.TB, script, scratch string) *Process {
	t.Helper()
	python := testsalt.Python(t)
	path, err1 := filepath.Abs(filepath.Join(here(), script))
	plainEnvironment(t)
	t.Setenv("PATH", strings.Join(append([]string{filepath.Join(filepath.Dir(path), programs)}, programDirs(python)...), string(os.PathListSeparator)))
	t.Setenv("PYTHONHASHSEED", "0") // tools in Python (firewalld's) list what they keep in sets in the same order to both sides
	logFile, err2 := os.Create(filepath.Join(scratch, "oracle.log"))
	cmd := exec.Command(python, "-B", path, scratch)
	cmd.Dir, cmd.Stderr = "/", logFile
	in, err3 := cmd.StdinPipe()
	out, err4 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, err3, err4, cmd.Start()); err != nil {
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
	p := &Process{Scratch: scratch, PID: cmd.Process.Pid, in: in, out: bufio.NewReaderSize(out, 1<<20),
		programs: ownPrograms(t), venv: filepath.Dir(filepath.Dir(python))}
	var hello struct{ Opts, Grains, Pillar map[string]any }
	p.read(t, &hello)
	p.Opts, p.Grains, p.Pillar = unwrapMap(hello.Opts), unwrapMap(hello.Grains), unwrapMap(hello.Pillar)
	return p
}

// plainEnvironment removes the variables that differ from one user to the next, until the test ends: stock takes
// its shell, its language and more from them, and its answers are compared with those of other runs.
func plainEnvironment(t testing.TB) {
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(setting, "=")
		if name == "PATH" || name == "HOME" || name == "TMPDIR" || strings.HasPrefix(name, "BRINE_") {
			continue
		}
		if name == "AUGEAS_ROOT" {
			continue // the test's own
		}
		if strings.HasPrefix(name, "DOCKER_") && os.Getenv("BRINE_CLIENTS") != "" {
			continue // of the daemon that LendDocker started
		}
		t.Setenv(name, "") // so that it is restored
		os.Unsetenv(name)
	}
	t.Setenv("LANG", "C.UTF-8")
	t.Setenv("SHELL", "/bin/bash")
}

// programDirs are the directories where both sides find programs: first those that have the programs themselves for which others have
// scripts that look for them each time, which costs more than what many cases do (pyenv's python, Debian's psql).
func programDirs(python string) []string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	real, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	real = real[max(0, len(real)-1):]
	if python, err := filepath.EvalSymlinks(python); err == nil {
		real = append(real, filepath.Dir(python))
	}
	real = slices.DeleteFunc(real, func(dir string) bool { return slices.Contains(dirs, dir) })
	return append(real, dirs...)
}

// Answer is what a call came to: a value, or an exception's name and message.
type Answer struct {
	Value          any
	Error, Message string
	Retcode        int
}

// Ask asks one question; the scripts say what is in it.
func (p *Process) Ask(t testing.TB, question map[string]any) Answer {
	t.Helper()
	q, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.in.Write(append(q, '\n')); err != nil {
		t.Fatal(err)
	}
	var a struct {
		Value, Retcode any
		Error, Message string
	}
	p.read(t, &a)
	code, _ := a.Retcode.(float64)
	return Answer{Value: unwrap(a.Value), Error: a.Error, Message: a.Message, Retcode: int(code)}
}

func (p *Process) read(t testing.TB, into any) {
	t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, into)
	}
	if err != nil {
		t.Fatalf("stock Salt answered %q: %v", line, err)
	}
}

// Roots are the minion's file roots by environment, with these options.
func Roots(opts map[string]any) map[string][]string {
	roots := map[string][]string{}
	for env, list := range opts["file_roots"].(map[string]any) {
		for _, dir := range list.([]any) {
			roots[env] = append(roots[env], dir.(string))
		}
	}
	return roots
}
