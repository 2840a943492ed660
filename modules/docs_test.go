package modules

import (
	"bytes"
	"compress/gzip"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// packed returns a text as docs.txt.gz has it.
func packed(t *testing.T, text string) *string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	s := b.String()
	return &s
}

func nothing(context.Context, *Call) (any, error) { return nil, nil }

// TestDocs: documentation of a file is shown like that of declarations, also of a module that lends its functions to
// another, and in the text of a wrong call.
func TestDocs(t *testing.T) {
	first := &Module{Name: "apt", Virtual: "pkg", Doc: "Packages.", Docs: packed(t, `# pkg.install

Install packages.

name
    The package.

    # a comment

CLI Example:

    salt '*' pkg.install vim
    salt '*' pkg.install nano

# pkg.remove

Remove packages.

# pkg.purge

Not shown, the declaration is.
`), Funcs: []Def{
		{Name: "install", Params: []Param{{Name: "name"}}, Run: nothing},
		{Name: "purge", Doc: "Purge packages.", Example: "salt '*' pkg.purge vim", Run: nothing},
		{Name: "remove", Run: nothing},
	}}
	second := &Module{Name: "resource", Virtual: "pkg", Docs: packed(t, "# pkg.check\n\nCheck packages.\n\n# pkg.remove\n\nNot shown.\n"),
		Funcs: []Def{{Name: "check", Run: nothing}, {Name: "remove", Run: nothing}}}
	install := "Install packages.\n\nname\n    The package.\n\n    # a comment\n\nCLI Example:\n\n" +
		"    salt '*' pkg.install vim\n    salt '*' pkg.install nano\n"
	want := map[string]any{
		"pkg.check":   "Check packages.",
		"pkg.install": install,
		"pkg.purge":   "Purge packages.\n\nCLI Example:\n\n    salt '*' pkg.purge vim\n",
		"pkg.remove":  "Remove packages.",
	}
	r, e := NewRegistry(first, second), &Env{}
	if diff := cmp.Diff(want, r.Docs(e, "")); diff != "" {
		t.Error(diff)
	}
	for fun, text := range want {
		if got := r.Help(e, fun); got != text {
			t.Errorf("%s: %q", fun, got)
		}
	}
	if got := r.Help(e, "pkg.absent"); got != "" {
		t.Errorf("a function that is missing: %q", got)
	}
	d := first.Documented().Def("install")
	if d.Example != "salt '*' pkg.install vim\nsalt '*' pkg.install nano" || first.Funcs[0].Doc != "" {
		t.Errorf("example %q, documentation of the declaration %q", d.Example, first.Funcs[0].Doc)
	}
	res := r.Run(t.Context(), e, Request{Fun: "pkg.install"})
	wrong := "Passed invalid arguments to pkg.install: install() missing 1 required positional argument: 'name'\n" + install
	if res.Return != wrong {
		t.Errorf("a wrong call: %q", res.Return)
	}
	delete(want, "pkg.install")
	e.Policy = denied("pkg.install")
	if diff := cmp.Diff(want, r.Docs(e, "pkg")); diff != "" {
		t.Error(diff)
	}
}
