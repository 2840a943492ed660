package match

import "testing"

func TestTarget(t *testing.T) {
	s := Subject{ID: "web1", Pillar: func() map[string]any { return map[string]any{"a": map[string]any{"b": "c:d"}} }}
	cases := []struct {
		kind, tgt, delimiter string
		want                 bool
	}{
		{"glob", "web*", "", true}, {"compound", "web1 and not db*", "", true}, {"pillar", "a:b:c:d", ":", true},
		{"pillar_pcre", "a#b#C:.$", "#", true}, {"pillar_pcre", "a#b#x", "#", false}, {"pillar_pcre", "a:b:c.*", "", true},
	}
	for _, c := range cases {
		if got, err := Target(c.kind, c.tgt, c.delimiter, s); got != c.want || err != nil {
			t.Errorf("%s %s: %v, %v", c.kind, c.tgt, got, err)
		}
	}
	if got, err := Target("nosuch", "x", "", s); got || err == nil {
		t.Errorf("an unknown type: %v, %v", got, err)
	}
	if got, _ := Target("pillar_pcre", "a#b", "#", Subject{}); got {
		t.Error("no pillar matches")
	}
}
