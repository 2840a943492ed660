package xmldict

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	root, err := Parse(`<?xml version="1.0"?><r xmlns="http://x/"><a>1</a><b><c/><c>2</c>tail</b><b>3</b></r>`)
	if err != nil {
		t.Fatal(err)
	}
	children := []any{map[string]any{"a": "1"}, map[string]any{"c": []any{nil, map[string]any{"c": "2"}}}, map[string]any{"b": "3"}}
	if diff := cmp.Diff(children, root.Children()); diff != "" {
		t.Error(diff)
	}
	data := map[string]any{"a": "1", "b": []any{map[string]any{"c": []any{nil, map[string]any{"c": "2"}}}, map[string]any{"b": "3"}}}
	if diff := cmp.Diff(data, root.Data()); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "text", "<a>", "<a/><b/>", strings.Repeat("<a>", 300)} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%.20q is taken", bad)
		}
	}
}
