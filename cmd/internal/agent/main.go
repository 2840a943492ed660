// Agent builds an agent from a list of modules, and prints its size and the size of each module.
//
//	brine-agent -name web-minion sys test cmd openstack/trove
//	   ──▶ a main.go that imports modules/sysmod, modules/test, modules/cmdmod and openstack/trove
//	   ──▶ bin/web-minion
//
// A word without a slash is the name of an execution module; it selects all packages that implement that module (pkg
// has one for each package manager). A word with a slash is the directory of a package: states/file,
// modules/returners/syslog, openstack/trove.
//
// The main.go is not written to the tree: `go build -overlay` provides it in a directory that does not exist. -print
// prints it, for an agent that needs its own directory.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/buildflags"
)

const (
	ours = "github.com/brine-salt/brine"
	// inOpenStack is the directory of the Go module openstack.
	inOpenStack = "openstack/"
)

func main() {
	a := agent{root: ".", out: os.Stdout}
	flag.StringVar(&a.name, "name", "", "the program's name")
	flag.StringVar(&a.dir, "dir", "bin", "the folder to build it in")
	flag.StringVar(&a.tags, "tags", "", "further build tags, separated by commas")
	flag.BoolVar(&a.each, "each", false, "print what each module adds, by an agent without it")
	flag.BoolVar(&a.print, "print", false, "print main.go and build nothing")
	flag.Parse()
	if err := a.run(words(flag.Args())); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// words splits arguments at blanks and commas.
func words(args []string) []string {
	return strings.FieldsFunc(strings.Join(args, " "), func(r rune) bool { return r == ' ' || r == ',' })
}

// agent describes the agent to build.
type agent struct {
	root, name, dir, tags string
	each, print           bool
	out                   io.Writer
}

// module is a word of the list and the import paths of its packages.
type module struct {
	word     string
	packages []string
}

func (a *agent) run(list []string) error {
	if !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(a.name) {
		return fmt.Errorf("cannot build %q: a name has small letters, digits and hyphens", a.name)
	}
	if len(list) == 0 {
		return fmt.Errorf("cannot build %s: name its modules, such as sys test cmd", a.name)
	}
	var modules []module
	for _, word := range list {
		packages, err := a.packages(word)
		if err != nil {
			return err
		}
		modules = append(modules, module{word, packages})
	}
	text := mainGo(a.name, modules)
	if a.print {
		_, err := io.WriteString(a.out, text)
		return err
	}
	program := filepath.Join(a.dir, a.name)
	size, err := a.build(program, modules)
	if err != nil {
		return err
	}
	bare, err := a.size(nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%-36s %7.2f MB\n", "an agent without modules", mib(bare))
	for _, m := range modules {
		added := ""
		if a.each {
			without, err := a.size(slices.DeleteFunc(slices.Clone(modules), func(o module) bool { return o.word == m.word }))
			if err != nil {
				return err
			}
			added = fmt.Sprintf("%+7.2f MB", mib(size-without))
		}
		fmt.Fprintf(a.out, "  %-34s %s\n", m.word, added)
	}
	fmt.Fprintf(a.out, "%-36s %7.2f MB\n", program, mib(size))
	return nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// packages returns the import paths for a word of the command line.
func (a *agent) packages(word string) ([]string, error) {
	if strings.Contains(word, "/") {
		dir := path.Clean(strings.TrimPrefix(word, ours+"/"))
		files, err := filepath.Glob(filepath.Join(a.root, filepath.FromSlash(dir), "*.go"))
		if err != nil || len(files) == 0 || !filepath.IsLocal(dir) {
			return nil, cmp.Or(err, fmt.Errorf("cannot take %s: there is no Go package in that folder", word))
		}
		return []string{path.Join(ours, dir)}, nil
	}
	shims, err := filepath.Glob(filepath.Join(a.root, "modules", "all", "*.go"))
	if err != nil {
		return nil, err
	}
	tag := regexp.MustCompile(`[ |(]modules\.` + regexp.QuoteMeta(word) + `(\W|$)`)
	imported := regexp.MustCompile(`(?m)^import _ "(.*)"`)
	var found []string
	for _, file := range shims {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			if m := imported.FindSubmatch(b); m != nil && strings.HasPrefix(line, "//go:build ") && tag.MatchString(strings.TrimSpace(line)) {
				found = append(found, string(m[1]))
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("cannot take %s: no module has this name, and a folder has a slash in it", word)
	}
	return found, nil
}

// mainGo returns the agent's main.go.
func mainGo(name string, modules []module) string {
	packages := []string{ours + "/minion/program"}
	for _, m := range modules {
		packages = append(packages, m.packages...)
	}
	slices.Sort(packages)
	var b strings.Builder
	fmt.Fprintf(&b, "// Command %s is a Salt minion, and salt-call by its first word.\npackage main\n\nimport (\n\t\"context\"\n\t\"os\"\n\n", name)
	for _, p := range slices.Compact(packages) {
		blank := "_ "
		if p == ours+"/minion/program" {
			blank = ""
		}
		fmt.Fprintf(&b, "\t%s%q\n", blank, p)
	}
	b.WriteString(")\n\nfunc main() {\n\tos.Exit(program.Main(context.Background(), os.Args, program.Options{NoDefaultMaster: true}))\n}\n")
	return b.String()
}

// size builds an agent with these modules in a temporary directory, and returns the program's size in bytes.
func (a *agent) size(modules []module) (int64, error) {
	dir, err := os.MkdirTemp("", "agent-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	return a.build(filepath.Join(dir, a.name), modules)
}

// build builds an agent as releases are built, and returns its size in bytes.
func (a *agent) build(program string, modules []module) (int64, error) {
	dir, err := os.MkdirTemp("", "agent-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	root, err := filepath.Abs(a.root)
	if err != nil {
		return 0, err
	}
	if program, err = filepath.Abs(program); err != nil {
		return 0, err
	}
	if slices.ContainsFunc(modules, func(m module) bool {
		return slices.ContainsFunc(m.packages, func(p string) bool { return strings.HasPrefix(p, ours+"/"+inOpenStack) })
	}) {
		root = filepath.Join(root, "openstack") // its packages have their own requirements
	}
	source, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	place := filepath.Join("cmd", "agent-"+a.name)
	if _, err := os.Stat(filepath.Join(root, place)); err == nil {
		return 0, fmt.Errorf("cannot build %s: %s is there", a.name, place)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, place, "main.go"): source}})
	if err != nil {
		return 0, err
	}
	for file, text := range map[string][]byte{source: []byte(mainGo(a.name, modules)), overlay: replace} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return 0, err
		}
	}
	var tags []string
	if a.tags != "" {
		tags = strings.Split(a.tags, ",")
	}
	args := append([]string{"build", "-overlay", overlay, "-o", program}, buildflags.Release(tags...)...)
	cmd := exec.Command("go", append(args, "./"+filepath.ToSlash(place))...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("cannot build %s: %w", a.name, err)
	}
	info, err := os.Stat(program)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
