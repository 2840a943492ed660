// Package brine_test holds the house rules: who may import whom, what must stay out of the programs, and that every
// package says what it is.
package brine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/brine-salt/brine"

// pkg is what the tests need of `go list -json`.
type pkg struct {
	ImportPath string
	Doc        string
	Name       string
	Imports    []string
	Deps       []string
	GoFiles    []string
}

// room is the path below the module, "" for packages of others.
func room(path string) string {
	r, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return ""
	}
	return r
}

func list(t *testing.T, goos string, args ...string) []pkg {
	t.Helper()
	args = append([]string{"list", "-e", "-json=ImportPath,Doc,Name,Imports,Deps,GoFiles"}, args...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("cannot read the answer of go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

// in reports whether a room is one of the given ones or lies below one of them.
func in(r string, rooms ...string) bool {
	return slices.ContainsFunc(rooms, func(x string) bool { return r == x || strings.HasPrefix(r, x+"/") })
}

// mayImport is the table of arrows: whether a package in room from may import one in room to.
func mayImport(from, to string) bool {
	if to == "internal/python/pytext" || to == "modules/pyobj" && from != "internal/python/pytext" && !in(from, "protocol") {
		return true // Python's spelling of values, and its collections; they need nothing else
	}
	switch {
	case in(to, "openstack"):
		return false // a Go module of its own, which nothing in the core knows of
	case in(from, "internal/python/pytext", "modules/pyobj"):
		return false
	case in(to, "cmd"):
		return in(from, "cmd") && in(to, "cmd/internal")
	case in(to, "examples"):
		return in(from, "examples")
	case in(to, "modules/all", "modules/returners/all", "states/all"):
		return in(from, "cmd", "interop", "examples")
	case in(from, "cmd", "interop"):
		return true
	case in(from, "examples"):
		return !in(to, "internal") // programs of those who embed, who see no internal package
	case in(to, "internal/testkit"):
		return in(from, "internal/testkit", "protocol/transport/transporttest") // in no program
	case in(from, "protocol"):
		return in(to, "protocol")
	case from == "modules":
		return false
	case from == "modules/state":
		return in(to, "modules", "states", "internal") // the door to the state system
	case in(from, "modules"):
		return in(to, "modules", "internal")
	case in(from, "states"):
		return in(to, "states", "modules", "protocol", "internal")
	case in(from, "minion"):
		return in(to, "minion", "protocol", "modules", "states", "internal")
	case in(from, "master/runner", "master/restapi", "master/pillar") && to == "modules":
		return true // runners are declared as every function of Salt is, and templates call functions
	case in(from, "master/reactor") && (to == "modules" || to == "states"):
		return true // reactions have the form of states
	case in(from, "master"):
		return in(to, "master", "protocol", "states/render", "internal") && !in(to, "internal/modkit")
	case in(from, "internal/modkit"): // speaks the contract of modules, and serves no one else
		return in(to, "internal") || to == "modules"
	case in(from, "internal"):
		return in(to, "internal", "protocol") && !in(to, "internal/modkit")
	}
	return false
}

// TestNothingOfOpenStack: the core needs no OpenStack library, and openstack/ stays a module of its own.
func TestNothingOfOpenStack(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"openstack", "gophercloud"} {
		if strings.Contains(string(mod), word) {
			t.Errorf("go.mod names %s", word)
		}
	}
	for _, p := range list(t, "linux", "./...") {
		for _, imp := range append(p.Imports, p.ImportPath) {
			if in(room(imp), "openstack") {
				t.Errorf("%s: %s is of openstack/", p.ImportPath, imp)
			}
		}
	}
	own, err := os.ReadFile("openstack/go.mod")
	if err != nil || !strings.HasPrefix(string(own), "module "+module+"/openstack\n") {
		t.Errorf("openstack/go.mod: %v, %.60q", err, own)
	}
}

func TestArrows(t *testing.T) {
	for _, goos := range []string{"linux", "windows", "freebsd", "darwin"} {
		for _, p := range list(t, goos, "./...") {
			from := room(p.ImportPath)
			for _, imp := range p.Imports {
				if to := room(imp); to != "" && !mayImport(from, to) {
					t.Errorf("%s: %s must not import %s", goos, from, to)
				}
			}
		}
	}
}

// TestFences keeps libraries that do harm when trusted behind the one package that guards each.
func TestFences(t *testing.T) {
	fences := []struct{ library, room string }{
		{"github.com/vmihailenco/msgpack", "protocol/payload"},
		{"github.com/go-zeromq/zmq4", "protocol/transport/zeromq"},
		{"github.com/coder/websocket", "protocol/transport/ws master/restapi"},
		{"github.com/spf13/viper", "cmd internal/saltcli examples/embedded-master"},
		{"github.com/spf13/pflag", "cmd internal/saltcli"},
		{"modernc.org/sqlite", "master modules/returners/sqlite3 modules/sqlite3"},
		{"github.com/theupdateframework/go-tuf", "cmd/internal/update cmd/internal/repository"},
		{"github.com/sigstore/sigstore", "cmd/internal/repository"},
		{"golang.org/x/perf", "cmd/internal/paired"},
		{"github.com/twmb/franz-go", "modules/returners/kafka"},
		{"github.com/lib/pq", "master/store/postgres modules/returners/postgres"},
		{"github.com/go-sql-driver/mysql", "master/store/mysql modules/mysql modules/returners/mysql"},
	}
	for _, p := range list(t, "linux", "./...") {
		for _, imp := range p.Imports {
			for _, f := range fences {
				if (imp == f.library || strings.HasPrefix(imp, f.library+"/")) && !in(room(p.ImportPath), strings.Fields(f.room)...) {
					t.Errorf("%s imports %s; only %s may", room(p.ImportPath), imp, f.room)
				}
			}
		}
	}
}

// TestBans keeps what makes binaries large, or defeats the linker, out of the programs and the core.
func TestBans(t *testing.T) {
	linker := []string{"text/template", "html/template", "net/rpc", "plugin"}
	heavy := []string{"crypto/tls", "net/http", "database/sql"}
	cases := []struct {
		pattern string
		banned  []string
	}{
		// The templates come with viper, which the programs are asked to use; everything below cmd stays without them.
		{"./cmd/brine-minion", []string{"database/sql", "modernc.org/sqlite", "net/rpc", "plugin",
			"github.com/theupdateframework/go-tuf/v2/metadata"}},
		{"./modules", append(linker, heavy...)},
		{"./protocol", append(linker, heavy...)},
		{"./protocol/payload", append(linker, heavy...)},
		{"./protocol/crypt", append(linker, heavy...)},
		{"./protocol/target", append(linker, heavy...)},
		{"./protocol/transport", append(linker, heavy...)},
		{"./minion", append(linker, heavy...)},
	}
	for _, c := range cases {
		for _, p := range list(t, "linux", c.pattern) {
			if p.Name == "" {
				t.Errorf("%s: no such package", c.pattern)
			}
			for _, d := range p.Deps {
				if slices.Contains(c.banned, d) {
					t.Errorf("%s depends on %s:\n%s", c.pattern, d, why(t, c.pattern, d))
				}
			}
		}
	}
}

// why names the direct importers of a package within the dependencies of pattern.
func why(t *testing.T, pattern, dep string) string {
	t.Helper()
	var b strings.Builder
	for _, p := range list(t, "linux", "-deps", pattern) {
		if slices.Contains(p.Imports, dep) {
			fmt.Fprintf(&b, "\timported by %s\n", p.ImportPath)
		}
	}
	return b.String()
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range list(t, "linux", "./...") {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("package %s has no doc comment", room(p.ImportPath))
		}
	}
}

func TestRoomNames(t *testing.T) {
	for _, p := range list(t, "linux", "./...") {
		for _, part := range strings.Split(room(p.ImportPath), "/") {
			if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "base", "core", "types", "misc"}, part) {
				t.Errorf("%s: a room is named after what it holds, not %q", room(p.ImportPath), part)
			}
		}
	}
}
