package augeas_cfg

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// TestNothingIsSavedAfterAFailure: when one of several commands fails, augtool is not asked to save at all.
func TestNothingIsSavedAfterAFailure(t *testing.T) {
	e := modulestest.Env(t)
	var scripts []string
	e.Runner = modulestest.Runner(func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		b, err := io.ReadAll(c.Stdin)
		scripts = append(scripts, string(b))
		return modules.CommandResult{ExitCode: 1, Stderr: []byte(unknown + "error: Too many matches for path expression\nThere are 2\n" + unknown)}, err
	})
	res := modules.NewRegistry(&modules.Module{Name: "augeas", Funcs: Module.Funcs}).Run(t.Context(), e, modules.Request{Fun: "augeas.execute",
		Kwargs: map[string]any{"commands": []any{"set /a 1", "set /b/* 2"}}})
	if text, _ := res.Return.(string); !strings.Contains(text, "Augeas.set() failed: Too many matches for path expression: There are 2") {
		t.Errorf("%v", res.Return)
	}
	if diff := cmp.Diff([]string{"set \"/a\" \"1\"\n=\nset \"/b/*\" \"2\"\n=\n"}, scripts); diff != "" {
		t.Error(diff)
	}
}

// TestValuesWithLines: values that look like further lines of augtool's answer are read as values.
func TestValuesWithLines(t *testing.T) {
	nodes, err := parsePrinted("/a/b = \"1\\n/a/c = (none)\\n\\\"x\\\\\\t\"\n/a/b/x\\ =\\=\n/a/c = \"\"\n")
	want := []node{{"/a/b", "1\n/a/c = (none)\n\"x\\\t"}, {"/a/b/x\\ =\\=", nil}, {"/a/c", ""}}
	if diff := cmp.Diff(want, nodes, cmp.AllowUnexported(node{})); diff != "" || err != nil {
		t.Error(err, diff)
	}
	got, err := pickMatched(nodes, "/a/b = 1\n/a/c = (none)\n\"x\\\t\n/a/c = \n")
	if diff := cmp.Diff([]node{want[0], want[2]}, got, cmp.AllowUnexported(node{})); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, out := range []string{"/a/b = 2\n", "/z = 1\n", "x"} {
		if got, err := pickMatched(nodes, out); err == nil {
			t.Errorf("%q: %v", out, got)
		}
	}
	if nodes, err := parsePrinted("/a = 1\n"); err == nil {
		t.Error(nodes)
	}
}

func FuzzPrinted(f *testing.F) {
	f.Add("/a = \"x\\n\"\n/b\n", "/a = x\n\n")
	f.Add("/a = \"\n", "")
	f.Fuzz(func(t *testing.T, printed, matched string) {
		nodes, err := parsePrinted(printed)
		if err == nil {
			_, _ = pickMatched(nodes, matched) // no panic
		}
	})
}

// TestPrefix: setvalue takes the path before all others, and directories of lenses, from among its arguments.
func TestPrefix(t *testing.T) {
	e := modulestest.Env(t)
	var script string
	e.Runner = modulestest.Runner(func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		b, err := io.ReadAll(c.Stdin)
		script = strings.Join(c.Args, " ") + "\n" + string(b)
		return modules.CommandResult{Stderr: []byte(unknown + unknown)}, err
	})
	r := modules.NewRegistry(&modules.Module{Name: "augeas", Funcs: Module.Funcs})
	set := func(args ...any) modules.Result {
		return r.Run(t.Context(), e, modules.Request{Fun: "augeas.setvalue", Args: args})
	}
	if res := set("prefix=/files/x/", "/a b", int64(5), "load_path=/"); res.Err != nil ||
		script != "augtool -f /dev/stdin -r "+e.Root+" -I /\nset \"/files/x/a b\" \"5\"\n=\nsave\n=\n" {
		t.Errorf("%v, %q", res.Err, script)
	}
	for _, name := range []string{"prefix=", "load_path="} {
		if res := set(name+"a", name+"b"); res.Err == nil || res.Err.Error() != "Only one '"+name+"' value is permitted" {
			t.Errorf("%v", res.Err)
		}
	}
}
