package owncode

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
)

func TestNotRun(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"mine.py", "grains/host.py", "_states/pack/__init__.py"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e := &modules.Env{Opts: func() map[string]any { return map[string]any{"module_dirs": []any{dir}} }}
	var got []string
	for _, f := range NotRun(e, "base", []string{"top.sls", "_modules/mine.py", "_modules/shop.py", "_modules/README.md", "_modules/big/__init__.py",
		"_modules/big/part.py", "_grains/host.py", "_grains/other.py", "_states/pack/__init__.py", "_output/table.py", "_nokind/x.py", "web/_modules/x.py"}) {
		got = append(got, f.Path)
	}
	want := []string{"_modules/shop.py", "_modules/big/__init__.py", "_grains/other.py", "_output/table.py"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestGrainsIn(t *testing.T) {
	text := `{{ grains['a'] }} {{ grains.get("b", 1) }} {{ grains.c }} {{ salt['grains.get']('d:x') }} {% if grains.has_value('e') %}
{{ salt.grains.get('f') }} {{ pillar['no'] }} {% for k in grains.items() %}`
	got := GrainsIn(text)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e", "f"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMentions(t *testing.T) {
	for text, want := range map[string]bool{`return {"shop": 1}`: true, `g['shop'] = 1`: true, `dict(shop=1)`: true, `# the shop`: false, `"shop_kind"`: false} {
		if got := Mentions(text, "shop"); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
