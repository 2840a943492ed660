// Package docs tests the documentation: what stands in it is extracted, built, run, and compared.
package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/internal/testkit/gobuild"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/modules/execplugin/conformance"
	"github.com/brine-salt/brine/protocol/events"
)

// block is a fenced part of a page: the language and, behind it, the name of the file that it is.
type block struct {
	language, file, text string
	line                 int
}

// blocks are the fenced parts of a page.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var (
		list []block
		in   *block
		n    int
	)
	for line := range strings.Lines(string(b)) {
		n++
		head, fence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case fence && in == nil:
			language, file, _ := strings.Cut(head, " ")
			in = &block{language: language, file: file, line: n}
		case fence:
			list = append(list, *in)
			in = nil
		case in != nil:
			in.text += line
		}
	}
	if in != nil {
		t.Fatalf("%s:%d: the block does not end", page, in.line)
	}
	return list
}

// write puts the files of a page below a directory, those whose names begin as asked.
func write(t *testing.T, dir string, list []block, prefix string) (paths []string) {
	t.Helper()
	for _, b := range list {
		if b.file == "" || !strings.HasPrefix(b.file, prefix) {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(b.file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.text), 0o755); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// TestGoSnippets: all Go code of the pages is compiled. It is a file that another test builds, a whole program, or part of an example.
func TestGoSnippets(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples string
	for _, file := range []string{"../master/example_test.go", "../master/example_pages_test.go", "../master/restapi/example_test.go"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples += words(string(b))
	}
	// By TestPrograms and TestOwnAgent here, TestEqualMastersProgram of package master, TestTroveMinion of cmd/internal/agent.
	built := map[string][]string{
		"modules.md": {"greet/greet.go", "greet/greet_test.go"}, "build-your-own.md": {"main.go", "trove-minion"}, "ha.md": {"ha/main.go"},
	}
	parts := 0
	for _, page := range append(pages, "../README.md") {
		for _, b := range blocks(t, page) {
			switch {
			case b.language != "go" || slices.Contains(built[page], b.file):
			case strings.HasPrefix(page, "by-example"): // TestPages of package examples
			case page == "embedding.md" && b.file == "" && strings.HasPrefix(b.text, "package main\n"): // TestEmbeddingProgram of package master
			case b.file == "example":
				parts++
				if !strings.Contains(examples, words(b.text)) {
					t.Errorf("%s:%d: no example has this:\n%s", page, b.line, b.text)
				}
			default:
				t.Errorf("%s:%d: nothing compiles this", page, b.line)
			}
		}
	}
	if parts < 10 {
		t.Errorf("the pages have %d parts of examples", parts)
	}
}

// TestRequests: the requests that the page names are those of the description that is served.
func TestRequests(t *testing.T) {
	page, err := os.ReadFile("http-api.md")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("../master/restapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var served struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(b, &served); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	left := map[string]bool{}
	for path, methods := range served.Paths {
		for method := range methods {
			left[strings.ToUpper(method)+" "+parameter.ReplaceAllString(path, "*")] = true
		}
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:GET|POST|DELETE) /[^` ]*)`").FindAllStringSubmatch(string(page), -1) {
		request, _, _ := strings.Cut(m[1], "?")
		head, optional, _ := strings.Cut(strings.TrimSuffix(request, "]"), "[/")
		named[regexp.MustCompile(`<[^>]*>`).ReplaceAllString(head, "*")] = true
		if optional != "" {
			named[head+"/*"] = true
		}
	}
	if diff := cmp.Diff(left, named); diff != "" {
		t.Errorf("(-served +page)\n%s", diff)
	}
}

// words is a text without its layout.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

func unix(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("programs as modules are not available on Windows")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		prereq.Missing(t, "python3")
	}
}

// buildProgram builds a program.
func buildProgram(t *testing.T, dir, pkg string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	if err := gobuild.Build(dir, out, pkg); err != nil {
		t.Fatal(err)
	}
	return out
}

func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as everything else that is built
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// TestPrograms runs the programs and Python modules of two pages, and what these show of salt-call.
func TestPrograms(t *testing.T) {
	unix(t)
	page := append(blocks(t, "plugins.md"), blocks(t, "python-modules.md")...)
	conf := filepath.Join(t.TempDir(), "salt")
	for _, program := range write(t, conf, page, "modules.d/") {
		t.Run(filepath.Base(program), func(t *testing.T) { conformance.Run(t, program) })
	}
	write(t, conf, page, "python/")
	text := fmt.Sprintf("id: web1\nroot_dir: %s\nmodule_dirs: [%s]\n", conf, filepath.Join(conf, "python"))
	if err := os.WriteFile(filepath.Join(conf, "minion"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := buildProgram(t, "..", "./cmd/brine-minion")
	shown := 0
	for _, b := range page {
		if b.language == "console" {
			shown += console(t, b, program, conf)
		}
	}
	if shown == 0 {
		t.Error("the pages show no calls")
	}
}

// console runs the commands of a block and compares what they print.
func console(t *testing.T, b block, program, conf string) (n int) {
	t.Helper()
	for _, part := range strings.Split("\n"+b.text, "\n$ ")[1:] {
		n++
		line, want, _ := strings.Cut(part, "\n")
		args, err := shlex.Split(line)
		if err != nil || args[0] != "salt-call" {
			t.Fatalf("line %d: cannot run %s: %v", b.line, line, err)
		}
		cmd := exec.CommandContext(t.Context(), program, append([]string{"call", "-c", conf, "-l", "quiet"}, args[1:]...)...)
		got, _ := cmd.CombinedOutput()
		if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(string(got))); diff != "" {
			t.Errorf("line %d: %s\n%s", b.line, line, diff)
		}
	}
	return n
}

// TestOwnAgent builds the agent of the page, with the module of the other one, and calls that through a master.
func TestOwnAgent(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, blocks(t, "modules.md"), "greet/")
	write(t, dir, blocks(t, "build-your-own.md"), "")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(root, "examples", "tiny-agent", name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("example.org/tiny-agent", "example.org/ours", "=> ../..", "=> "+root).Replace(string(b))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "go", "vet", "./...")
	run(t, dir, "go", "test", "./...")
	program := buildProgram(t, dir, ".")
	if got := ask(t, program, "greet.hello", "Ada"); got != "Hello Ada" {
		t.Errorf("got %v", got)
	}
	wrongArguments(t, program)
	// Until there is a release, go get alone finds no version.
	page, err := os.ReadFile("build-your-own.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "    go mod edit -replace github.com/brine-salt/brine=") {
		t.Error("the page does not say where the packages come from")
	}
}

// wrongArguments starts an agent as a newcomer does: without its file, and with one that is not there. It says so and ends, and
// does not become a minion with Salt's defaults.
func wrongArguments(t *testing.T, program string) {
	t.Helper()
	for want, args := range map[string][]string{"usage: ": nil, "no such file": {"/no/such/file"}, "no such file or": {"--help"}} {
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
		stop()
		if err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "panic") {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
}

// TestTinyAgent builds the example and calls its module through a master.
func TestTinyAgent(t *testing.T) {
	dir := filepath.Join("..", "examples", "tiny-agent")
	run(t, dir, "go", "vet", "./...")
	program := buildProgram(t, dir, ".")
	if got := ask(t, program, "greet.hello", "Ada"); got != "Hello Ada from tiny" {
		t.Errorf("got %v", got)
	}
	wrongArguments(t, program)
	main, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, imports, _ := strings.Cut(string(main), "import (\n")
	imports, _, _ = strings.Cut(imports, ")")
	if n := strings.Count(imports, "\""); n >= 2*20 {
		t.Errorf("it has %d imports", n/2)
	}
}

// ask starts an agent, with a master of its own, and calls a function of it.
func ask(t *testing.T, program, fun string, args ...any) any {
	t.Helper()
	m, err := master.New(master.Options{Network: master.Loopback(),
		Keys: master.KeyOptions{AutoAccept: true},
		Log:  slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx) }()
	defer func() {
		stop()
		<-served
	}()
	<-m.Ready()
	sub := m.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/minion/tiny/start"})
	defer sub.Close()
	dir := t.TempDir()
	conf := fmt.Sprintf("id: tiny\nroot_dir: %s\nmaster: 127.0.0.1\nmaster_port: %d\n", dir, m.RequestAddr().(*net.TCPAddr).Port)
	file := filepath.Join(dir, "minion")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	if _, err := sub.Next(ctx); err != nil {
		t.Fatalf("the agent does not connect: %v", err)
	}
	results, err := m.Run(ctx, master.Job{Fun: fun, Args: args, Tgt: "*"})
	if err != nil {
		t.Fatal(err)
	}
	return results["tiny"].Return
}
