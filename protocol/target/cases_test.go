package target

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cases is testdata/cases.json.gz: the answers of Salt's own matchers (testdata/generate.py).
type cases struct {
	Salt, Python string
	Nodegroups   map[string]any
	Subjects     []map[string]any
	// Each entry of Match is kind, target, delimiter, index of the subject, answer.
	Match         [][]any
	Data          []any
	Subdict       [][]any
	Traverse      [][]any
	Text          [][]any
	Nodegroup     [][]any
	Regex         [][]string
	RegexSubjects []string `json:"regex_subjects"`
	Glob          [][]string
	GlobSubjects  []string `json:"glob_subjects"`
	Word          [][]any
}

func loadCases(t testing.TB) *cases {
	t.Helper()
	// Other cases, generated with another seed, can be tried without adding them here.
	path := os.Getenv("BRINE_TARGET_CASES")
	if path == "" {
		path = "testdata/cases.json.gz"
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(z)
	d.UseNumber()
	var c cases
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	for i := range c.Subjects {
		c.Subjects[i] = plain(c.Subjects[i]).(map[string]any)
	}
	for _, list := range [][][]any{c.Match, c.Subdict, c.Traverse, c.Text, c.Nodegroup} {
		for _, row := range list {
			for i := range row {
				row[i] = plain(row[i])
			}
		}
	}
	c.Data = plain(c.Data).([]any)
	return &c
}

// plain converts values that JSON decoded to those that a network message has.
func plain(v any) any {
	switch x := v.(type) {
	case json.Number:
		if strings.ContainsAny(string(x), ".eE") {
			f, _ := x.Float64()
			return f
		}
		if n, err := x.Int64(); err == nil {
			return n
		}
		n, _ := strconv.ParseUint(string(x), 10, 64)
		return n
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = plain(x[i])
		}
		return out
	case map[string]any:
		if pairs, ok := x["__map__"].([]any); ok {
			m := make(map[any]any)
			for _, p := range pairs {
				kv := p.([]any)
				m[plain(kv[0])] = plain(kv[1])
			}
			return m
		}
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = plain(e)
		}
		return out
	}
	return v
}

func (c *cases) subject(i int) Subject {
	s := c.Subjects[i]
	get := func(key string) func() map[string]any {
		return func() map[string]any { return s[key].(map[string]any) }
	}
	return Subject{ID: s["id"].(string), Grains: get("grains"), Pillar: get("pillar"), Data: get("data"), Nodegroups: c.Nodegroups}
}

func TestMatchLikeSalt(t *testing.T) {
	c := loadCases(t)
	if len(c.Match) < 2000 {
		t.Fatalf("only %d cases", len(c.Match))
	}
	bad := 0
	for _, row := range c.Match {
		kind, tgt, delim := row[0].(string), row[1], row[2].(string)
		got, err := Match(kind, tgt, delim, c.subject(int(row[3].(int64))))
		want := row[4] == any(true)
		if got == want {
			continue
		}
		if bad++; bad <= 30 {
			t.Errorf("%s %q (delimiter %q) on subject %v: got %v, %v; Salt %v", kind, tgt, delim, row[3], got, err, row[4])
		}
	}
	t.Logf("%d cases of Salt %s, %d differ", len(c.Match), c.Salt, bad)
}

func TestSubdictLikeSalt(t *testing.T) {
	c := loadCases(t)
	for _, row := range c.Subdict {
		data := c.Data[row[0].(int64)]
		got := SubdictMatch(data, row[1].(string), row[2].(string), SubdictMode(row[3].(int64)))
		if got != (row[4] == any(true)) {
			t.Errorf("%q (delimiter %q, mode %v) on %s: got %v, Salt %v", row[1], row[2], row[3], Repr(data), got, row[4])
		}
	}
}

func TestTraverseLikeSalt(t *testing.T) {
	c := loadCases(t)
	for _, row := range c.Traverse {
		data := c.Data[row[0].(int64)]
		got, ok := Traverse(data, row[1].(string), row[2].(string))
		if ok != row[3].(bool) || !cmp.Equal(got, row[4]) {
			t.Errorf("%q (delimiter %q) on %s: got %s, %v; Salt %s, %v", row[1], row[2], Repr(data), Repr(got), ok, Repr(row[4]), row[3])
		}
	}
}

func TestTextLikePython(t *testing.T) {
	c := loadCases(t)
	for _, row := range c.Text {
		if got := Str(row[0]); got != row[1] {
			t.Errorf("got %q, Python %q", got, row[1])
		} else if got := lower(got); got != row[2] {
			t.Errorf("lower case of %q: got %q, Python %q", row[1], got, row[2])
		}
	}
}

func TestNodegroupLikeSalt(t *testing.T) {
	c := loadCases(t)
	for _, row := range c.Nodegroup {
		words, err := NodegroupWords(row[0].(string), c.Nodegroups)
		if err != nil {
			t.Errorf("%v: %v", row[0], err)
			continue
		}
		got := make([]any, len(words))
		for i := range words {
			got[i] = words[i]
		}
		if diff := cmp.Diff(row[1], any(got)); diff != "" {
			t.Errorf("%v: %s", row[0], diff)
		}
	}
}

func TestWordLikeSalt(t *testing.T) {
	for _, row := range loadCases(t).Word {
		want := row[1].([]any)
		w := ParseWord(row[0].(string))
		engine := ""
		if w.Engine != 0 {
			engine = string(w.Engine)
		}
		if engine != want[0] || w.Delimiter != want[1] || w.Engine != 0 && w.Pattern != want[2] {
			t.Errorf("%q: got %q %q %q, Salt %q", row[0], engine, w.Delimiter, w.Pattern, want)
		}
	}
}

func TestGlobLikePython(t *testing.T) {
	c := loadCases(t)
	for _, row := range c.Glob {
		for i, s := range c.GlobSubjects {
			if got := Glob(row[0], s); got != (row[1][i] == '1') {
				t.Errorf("pattern %q on %q: got %v", row[0], s, got)
			}
		}
	}
}

func TestRegexLikePython(t *testing.T) {
	c := loadCases(t)
	n := 0
	for _, row := range c.Regex {
		re, err := CompileRegex(row[0])
		if (err != nil) != strings.Contains(row[1], "x") {
			t.Errorf("pattern %q: error %v, Python %s", row[0], err, row[1][:1])
			continue
		}
		if err != nil {
			continue
		}
		for i, s := range c.RegexSubjects {
			n++
			got, err := re.MatchStart(s)
			if err != nil || got != (row[1][i] == '1') {
				t.Errorf("pattern %q on %q: got %v, %v", row[0], s, got, err)
			}
			// The backtracking engine must agree even where MatchStart used the linear one.
			re.once.Do(re.compileBacktracking)
			if re.err != nil || row[0] == "(?i)ſ" {
				continue // that engine folds by lower case alone, and the long s is lower case already
			}
			if again, err := re.matchBacktracking(s); err != nil || again != (row[1][i] == '1') {
				t.Errorf("pattern %q on %q, backtracking: got %v, %v", row[0], s, again, err)
			}
		}
	}
	t.Logf("%d patterns, %d comparisons", len(c.Regex), n)
}

// TestNeedsAreEnough: the data that Needs names leads to the same answer as all data of the subject.
func TestNeedsAreEnough(t *testing.T) {
	c := loadCases(t)
	parts, whole := 0, 0
	for _, row := range c.Match {
		e, err := Compile(row[0].(string), row[1], row[2].(string), c.Nodegroups)
		if err != nil {
			continue
		}
		s := c.subject(int(row[3].(int64)))
		needs := e.Needs()
		cut := func(all func() map[string]any, keys []string, wanted bool) func() map[string]any {
			if wanted {
				whole++
				return all
			}
			parts++
			return func() map[string]any {
				out := map[string]any{}
				for _, k := range keys {
					if v, ok := all()[k]; ok {
						out[k] = v
					}
				}
				return out
			}
		}
		less := s
		less.Grains = cut(s.Grains, needs.Grains, needs.AllGrains)
		less.Pillar = cut(s.Pillar, needs.Pillar, needs.AllPillar)
		want, wantErr := e.Match(s)
		got, gotErr := e.Match(less)
		if got != want || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%s %q on subject %v: %v, %v with %+v, %v, %v with all", row[0], row[1], row[3], got, gotErr, needs, want, wantErr)
		}
	}
	if parts < 1000 || whole == 0 {
		t.Error("cases with parts:", parts, "and with all:", whole)
	}
}
