package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed declare.py
var declareProgram string

// A declaration is the output of declare.py: the functions that a module of Salt declares.
type declaration struct {
	Called    string
	Functions []struct {
		Name, Python, Args, Kwargs string
		Params                     []struct {
			Name        string
			Default     any
			Optional    bool
			KeywordOnly bool `json:"keyword_only"`
			Unclear     string
		}
	}
}

// beginModule writes the first files of a module that stock has and brine lacks: each function as stock declares it,
// with a body that returns an error, and one case. Its tests fail until the functions are written.
func beginModule(root, at, salt string) error {
	wing, name := filepath.Split(filepath.Clean(at))
	if wing = strings.TrimSuffix(wing, "/"); wing != "modules" && wing != "states" || !isName(name) {
		return fmt.Errorf("cannot begin %s: it must be modules/NAME or states/NAME, as in Salt's source", at)
	}
	source := filepath.Join(salt, wing, name+".py")
	d, err := readDeclaration(source)
	if err != nil {
		return err
	}
	folder := wing + "/" + name
	files := []struct{ path, text string }{
		{folder + "/" + name + ".go", d.source(wing, name)},
		{folder + "/" + name + "_test.go", testOf(wing, name)},
		{wing + "/testdata/stock/" + name + ".yaml", d.cases(wing, name)},
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(root, f.path)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot begin %s: %s exists", at, f.path)
		}
	}
	if err := os.Mkdir(filepath.Join(root, folder), 0o755); err != nil {
		return err
	}
	for _, f := range files {
		text := []byte(f.text)
		if strings.HasSuffix(f.path, ".go") {
			if text, err = format.Source(text); err != nil {
				return fmt.Errorf("cannot format %s: %w", f.path, err)
			}
		}
		if err := os.WriteFile(filepath.Join(root, f.path), text, 0o644); err != nil {
			return err
		}
		fmt.Println(f.path)
	}
	return nil
}

// readDeclaration parses a file with Python's parser.
func readDeclaration(path string) (*declaration, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("cannot find the module in Salt's source: %w", err)
	}
	cmd := exec.Command("python3", "-c", declareProgram, path)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	d := &declaration{}
	if err := json.Unmarshal(out, d); err != nil {
		return nil, fmt.Errorf("cannot read what %s declares: %w", path, err)
	}
	if len(d.Functions) == 0 {
		return nil, fmt.Errorf("cannot begin a module: %s declares no function", path)
	}
	return d, nil
}

// source returns the Go source of the package, not formatted yet.
func (d *declaration) source(wing, name string) string {
	var b bytes.Buffer
	kind, virtual, imports := "execution", "", `"github.com/brine-salt/brine/modules"`
	if wing == "states" {
		kind = "state"
		imports += "\n" + `"github.com/brine-salt/brine/states"`
	}
	called := name
	if d.Called != "" && d.Called != name {
		called, virtual = d.Called, fmt.Sprintf("Virtual: %q, ", d.Called)
	}
	fmt.Fprintf(&b, `// Package %[1]s is Salt's %[2]s module %[3]s (salt/%[4]s/%[1]s.py).
package %[1]s

import (
	"context"

	%[5]s
)

func init() { %[4]s.Register(Module) }

// Module is %[3]s.
var Module = &%[4]s.Module{Name: %[1]q, %[6]sDoc: "", Funcs: []%[4]s.Def{
`, name, kind, called, wing, imports, virtual)
	for _, f := range d.Functions {
		fmt.Fprintf(&b, "{Name: %q, ", f.Name)
		for _, field := range []struct{ name, value string }{{"Python", f.Python}, {"Args", f.Args}, {"Kwargs", f.Kwargs}} {
			if field.value != "" {
				fmt.Fprintf(&b, "%s: %q, ", field.name, field.value)
			}
		}
		b.WriteString("Doc: \"\", ")
		if wing == "modules" {
			b.WriteString("Example: \"\", ")
		}
		b.WriteString("Params: []modules.Param{")
		for _, p := range f.Params {
			fmt.Fprintf(&b, "\n{Name: %q", p.Name)
			switch {
			case p.Unclear != "":
				fmt.Fprintf(&b, ", Optional: true /* stock: %s */", p.Unclear)
			case p.Optional && p.Default == nil:
				b.WriteString(", Optional: true")
			case p.Optional:
				fmt.Fprintf(&b, ", Default: %s", literal(p.Default))
			}
			if p.KeywordOnly {
				b.WriteString(", KeywordOnly: true")
			}
			b.WriteString("},")
		}
		fmt.Fprintf(&b, "}, Run: %s},\n", goName(f.Name))
	}
	b.WriteString("}}\n")
	for _, f := range d.Functions {
		if wing == "states" {
			fmt.Fprintf(&b, "\nfunc %s(ctx context.Context, c *states.Call) (*states.Result, error) {\n", goName(f.Name))
		} else {
			fmt.Fprintf(&b, "\nfunc %s(ctx context.Context, c *modules.Call) (any, error) {\n", goName(f.Name))
		}
		fmt.Fprintf(&b, "return nil, modules.Errorf(\"cannot run %s.%s: it is not written yet\")\n}\n", called, f.Name)
	}
	return b.String()
}

// cases returns a call of each function, with a value for each required argument.
func (d *declaration) cases(wing, name string) string {
	called := name
	if d.Called != "" {
		called = d.Called
	}
	var b strings.Builder
	for _, f := range d.Functions {
		var args []string
		for _, p := range f.Params {
			if !p.Optional && p.Unclear == "" {
				args = append(args, "x")
			}
		}
		if wing == "states" {
			fmt.Fprintf(&b, "- state: %s.%s\n  name: \"@DIR@/x\"\n", called, f.Name)
			continue
		}
		fmt.Fprintf(&b, "- {fun: %s.%s, args: [%s]}\n", called, f.Name, strings.Join(args, ", "))
	}
	return b.String()
}

// testOf returns the test that every module must have.
func testOf(wing, name string) string {
	suite, call := "modules/modulestest", "modulestest.Run(t, Module)\n\tmodulestest.House(t, Module)"
	if wing == "states" {
		suite, call = "states/statestest", "statestest.Run(t, Module)"
	}
	return fmt.Sprintf("package %s\n\nimport (\n\t\"testing\"\n\n\t%q\n)\n\nfunc TestModule(t *testing.T) {\n\t%s\n}\n",
		name, module+suite, call)
}

// literal returns the Go code of a plain Python value.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return fmt.Sprintf("int64(%d)", int64(v))
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		list := make([]string, len(v))
		for i := range v {
			list[i] = literal(v[i])
		}
		return "[]any{" + strings.Join(list, ", ") + "}"
	case map[string]any:
		list := make([]string, 0, len(v))
		for k, x := range v {
			list = append(list, strconv.Quote(k)+": "+literal(x))
		}
		return "map[string]any{" + strings.Join(list, ", ") + "}"
	}
	return "nil"
}

// goName returns the name of the Go function for a function of Salt.
func goName(name string) string {
	parts := strings.Split(strings.Trim(name, "_"), "_")
	for i, p := range parts {
		if i > 0 && p != "" {
			parts[i] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	out := strings.Join(parts, "")
	if len(parts) == 1 { // avoid Go's keywords, and names of one word
		out = "run" + strings.ToUpper(out[:1]) + out[1:]
	}
	return out
}

// isName reports whether a text can be the name of a package and of a module's file in Salt.
func isName(s string) bool {
	for i, c := range s {
		if !('a' <= c && c <= 'z') && (i == 0 || c != '_' && !('0' <= c && c <= '9')) {
			return false
		}
	}
	return s != "" && !strings.HasSuffix(s, "_test")
}
