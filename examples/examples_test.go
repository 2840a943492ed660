// Package examples tests the programs below this directory, and makes the page that shows them.
package examples

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/examples/internal/local"
	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/internal/testkit/gobuild"
	"github.com/brine-salt/brine/master/join"
	_ "github.com/brine-salt/brine/modules/grainsmod"
	_ "github.com/brine-salt/brine/modules/test"
)

var update = flag.Bool("update", false, "write the pages of the examples")

// page is a page of docs that shows programs. Each program needs what those before it explain.
type page struct {
	file, title, intro string
	programs           []string
}

// pages are the pages, the index first.
var pages = []page{
	{"by-example.md", "By example", "", []string{"hello", "events", "stream"}},
	{"by-example-orders.md", "By example: orders", "jobs that wait for their minions", []string{"order", "order-files", "restart"}},
	{"by-example-minions.md", "By example: minions", "which minions may join, and what they get", []string{"fingerprint", "pillar"}},
	{"by-example-agents.md", "By example: agents", "your own modules and states", []string{"module", "state"}},
	{"by-example-http.md", "By example: HTTP", "the HTTP interface beside your master", []string{"http-api"}},
}

// programs returns the names of all programs, in the order of the pages.
func programs() []string {
	var names []string
	for _, p := range pages {
		names = append(names, p.programs...)
	}
	return names
}

// build builds the programs and returns the directory where they are.
func build(t *testing.T, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := gobuild.Build("", dir+string(filepath.Separator), packages...); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestExamples runs each program and compares what it prints with its output.txt.
func TestExamples(t *testing.T) {
	order := programs()
	shown, err := filepath.Glob("*/output.txt")
	if err != nil || len(shown) != len(order) {
		t.Fatalf("%d programs have an output, the page shows %d: %v", len(shown), len(order), err)
	}
	packages := make([]string, len(order))
	for i, name := range order {
		packages[i] = "./" + name
	}
	dir := build(t, packages...)
	for _, name := range order {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(filepath.Join(name, "output.txt"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var stdout, stderr bytes.Buffer
			cmd := exec.CommandContext(ctx, filepath.Join(dir, name))
			cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Errorf("%v\n%s", err, stderr.String())
			}
			if diff := cmp.Diff(string(want), stdout.String()); diff != "" {
				t.Errorf("-output.txt +printed:\n%s\n%s", diff, stderr.String())
			}
		})
	}
}

// TestPages compares the pages with the programs.
func TestPages(t *testing.T) {
	for _, p := range pages {
		t.Run(p.file, func(t *testing.T) {
			path := filepath.Join("..", "docs", p.file)
			text := p.text(t)
			if *update {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			have, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(have), text); diff != "" {
				t.Errorf("go test ./examples -update writes the page again; -page +programs:\n%s", diff)
			}
		})
	}
}

// text returns the page.
func (p page) text(t *testing.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", p.title)
	if p.intro == "" {
		b.WriteString("Small complete programs, for programmers who embed the master or build an agent. Each program runs on one machine, without root:\n\n" +
			"    go run ./examples/hello\n\n")
		for i, other := range pages {
			if i > 0 {
				fmt.Fprintf(&b, "\n[%s](%s):\n\n", strings.ToUpper(other.intro[:1])+other.intro[1:], other.file)
			}
			link := other.file
			if i == 0 {
				link = ""
			}
			for _, name := range other.programs {
				fmt.Fprintf(&b, "- [%s](%s#%s) %s\n", name, link, name, summary(t, name))
			}
		}
		b.WriteString("\nThe tests run every program and compare its output. `local.Serve` and `local.Minion` ([examples/internal/local](../examples/internal/local/local.go))\n" +
			"start a master and a minion in the same process, so that a program shows both sides.\n" +
			"[examples/embedded-master](../examples/embedded-master/main.go) is a complete service without them.\n")
	} else {
		fmt.Fprintf(&b, "Small complete programs: %s. [By example](by-example.md) lists all programs and says how to run them.\n", p.intro)
	}
	for _, name := range p.programs {
		source, err := os.ReadFile(filepath.Join(name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		output, err := os.ReadFile(filepath.Join(name, "output.txt"))
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(string(source), "\n)\n\n") // without the imports
		main := "func main() {\n\tif err := run(context.Background()); err != nil {\n\t\tlog.Fatal(err)\n\t}\n}\n\n"
		if !strings.Contains(body, main) {
			t.Errorf("%s: main does something else", name)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s Source with imports: [examples/%s](../examples/%s/main.go).\n\n```go\n%s```\n\nIt prints:\n\n```text\n%s```\n", name, comment(t, name), name, name,
			strings.Replace(body, main, "", 1), output)
	}
	return b.String()
}

// comment returns the comment of a program in one line, without its first words.
func comment(t *testing.T, name string) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(name, "main.go"), nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	doc := (&ast.CommentGroup{List: f.Doc.List}).Text()
	text, ok := strings.CutPrefix(strings.Join(strings.Fields(doc), " "), "Command "+name+" ")
	if !ok {
		t.Fatalf("%s has no comment that begins with its name", name)
	}
	return "This program " + text
}

// summary returns the first sentence of a program's comment.
func summary(t *testing.T, name string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(comment(t, name), "This program "), ". ")
	return strings.TrimSuffix(first, ".")
}

// TestEmbeddedMaster runs the whole service with a host that it knows and one that it does not.
func TestEmbeddedMaster(t *testing.T) {
	program := filepath.Join(build(t, "./embedded-master"), "embedded-master")
	dir, ports := t.TempDir(), freeport.Ports(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	hosts, config := filepath.Join(dir, "hosts.txt"), filepath.Join(dir, "ours.yaml")
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure(fmt.Sprintf("network: {interface: 127.0.0.1, publishport: %d, retport: %d}\njobs: {keep: 48h, timeout: 5s}\n",
		ports[0], ports[1]))
	start := func() (*exec.Cmd, *bufio.Scanner) {
		cmd := exec.CommandContext(ctx, program, "-dir", dir, "-hosts", hosts, "-config", config)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, bufio.NewScanner(out)
	}
	expect := func(lines *bufio.Scanner, want string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the program ended without %q: %v", want, lines.Err())
	}
	end := func(cmd *exec.Cmd) {
		t.Helper()
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.WriteFile(hosts, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, lines := start()
	expect(lines, "serving 0 hosts")
	stop, err := local.MinionAt(ctx, ports[1], ports[0], "web1", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	expect(lines, "sign-in of web1 → pend")
	end(cmd)

	key, err := os.ReadFile(filepath.Join(dir, "web1/etc/salt/pki/minion/minion.pub"))
	if err != nil {
		t.Fatal(err)
	}
	fingerprint, err := join.Fingerprint(string(key))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hosts, []byte("web1 "+fingerprint+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, lines = start()
	expect(lines, "serving 1 hosts")
	expect(lines, "sign-in of web1 → accept")
	expect(lines, "web1 is connected")
	expect(lines, "web1 is prepared: true map[osfinger:")
	end(cmd)

	if err := os.WriteFile(hosts, []byte("web1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, program, "-dir", dir, "-hosts", hosts).CombinedOutput()
	if want := hosts + ":1: want an id and a fingerprint"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("a line without a fingerprint: %v, %q, want %q", err, out, want)
	}

	configure("network: {publish_port: 1}\n")
	if err := os.WriteFile(hosts, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = exec.CommandContext(ctx, program, "-dir", dir, "-hosts", hosts, "-config", config).CombinedOutput()
	if want := "cannot read the configuration " + config; err == nil || !strings.Contains(string(out), want) ||
		!strings.Contains(string(out), "publish_port") {
		t.Errorf("a key that is no option: %v, %q, want %q", err, out, want)
	}
}
