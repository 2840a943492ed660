package target

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func minionSubject() Subject {
	return Subject{
		ID: "web1",
		Grains: func() map[string]any {
			return map[string]any{"os": "Debian", "ipv4": []any{"10.0.0.1"}, "roles": []any{"web", map[string]any{"tier": int64(1)}}}
		},
		Pillar: func() map[string]any { return map[string]any{"app": map[string]any{"name": "shop"}} },
	}
}

func TestMatchErrors(t *testing.T) {
	many := make([]string, maxWords+1)
	for i := range many {
		many[i] = "or"
	}
	laughs := map[string]any{"g0": "a or b", "self": "web* or N@self", "x": "N@y", "y": "N@x", "number": 5, "deep": "N@g40"}
	for i := 1; i <= 40; i++ {
		laughs[fmt.Sprintf("g%d", i)] = fmt.Sprintf("N@g%d or N@g%d", i-1, i-1)
	}
	tests := []struct {
		name, kind string
		tgt        any
		want       error
	}{
		{"unknown type", "cache", "x", ErrUnknownType},
		{"empty compound", TypeCompound, "", ErrSyntax},
		{"lone operator", TypeCompound, "and", ErrSyntax},
		{"open parenthesis", TypeCompound, "( a", ErrSyntax},
		{"closed parenthesis", TypeCompound, "a )", ErrSyntax},
		{"two operands", TypeCompound, "a b", ErrSyntax},
		{"python call", TypeCompound, "web1 or a ( b )", ErrSyntax},
		{"double not", TypeCompound, "not not a", ErrSyntax},
		{"unknown engine", TypeCompound, "R@x", ErrSyntax},
		{"bad pattern", TypeCompound, "E@(", ErrSyntax},
		{"word that is no text", TypeCompound, []any{"a", int64(1)}, ErrSyntax},
		{"compound that is a map", TypeCompound, map[string]any{}, ErrSyntax},
		{"nesting", TypeCompound, strings.Repeat("( ", 201) + "a" + strings.Repeat(" )", 201), ErrLimit},
		{"words", TypeCompound, many, ErrLimit},
		{"unknown group", TypeCompound, "N@none or web*", ErrNodegroup},
		{"group that contains itself", TypeCompound, "N@self", ErrNodegroup},
		{"groups in a loop", TypeCompound, "N@x", ErrNodegroup},
		{"group of a wrong type", TypeCompound, "N@number", ErrNodegroup},
		{"groups that explode", TypeCompound, "N@deep", ErrLimit},
		{"group by type", TypeNodegroup, "self", ErrNodegroup},
		{"pcre not text", TypePCRE, []any{"a"}, ErrSyntax},
		{"pcre too long", TypePCRE, strings.Repeat("a", maxRegex+1), ErrLimit},
		{"network with host bits", TypeIPCIDR, "10.0.0.1/8", ErrSyntax},
		{"levels", TypeGrain, strings.Repeat("a:", maxSplits+1), ErrLimit},
		{"long expression", TypeGrain, strings.Repeat("a", maxExpression) + ":b", ErrLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := minionSubject()
			s.Nodegroups = laughs
			ok, err := Match(tt.kind, tt.tgt, "", s)
			if ok || !errors.Is(err, tt.want) {
				t.Errorf("got %v, %v; want false and %v", ok, err, tt.want)
			}
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("error text of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestNestingUpToPythonsLimit(t *testing.T) {
	ok, err := Match(TypeCompound, strings.Repeat("( ", 200)+"web1"+strings.Repeat(" )", 200), "", minionSubject())
	if !ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
}

func TestMissingData(t *testing.T) {
	for _, expr := range []string{"G@os:Debian", "P@os:D", "I@a:b", "J@a:b", "S@10.0.0.1", "S@10.0.0.0/8"} {
		if ok, err := Match(TypeCompound, expr, "", Subject{ID: "a"}); ok || err != nil {
			t.Errorf("%s: got %v, %v", expr, ok, err)
		}
		if ok, err := Match(TypeCompound, "not "+expr, "", Subject{ID: "a"}); !ok || err != nil {
			t.Errorf("not %s: got %v, %v", expr, ok, err)
		}
	}
	if ok, err := Match(TypeData, "a:b", "", Subject{ID: "a"}); ok || err != nil {
		t.Errorf("data: got %v, %v", ok, err)
	}
}

func TestExpandNodegroups(t *testing.T) {
	groups := map[string]any{"a": "web* or db*", "b": []any{"N@a", "and", "G@os:x"}, "names": "n1 n2"}
	for expr, want := range map[string]string{
		"N@a and x":   "web* or db* and x",
		"N@b or N@":   "( ( web* or db* ) and G@os:x ) or N@",
		"not N@names": "not L@n1,n2",
		"  x   or y ": "x or y",
	} {
		if got, err := ExpandNodegroups(expr, groups); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", expr, got, err, want)
		}
	}
	if _, err := ExpandNodegroups("N@zz", groups); !errors.Is(err, ErrNodegroup) {
		t.Errorf("unknown group: %v", err)
	}
}

func TestSelect(t *testing.T) {
	ids := []string{"db1", "old", "web1", "web2"}
	cached := func(id string) Cached {
		switch id {
		case "web1":
			return Cached{Grains: map[string]any{"os": "Debian", "ipv4": []any{"10.0.0.1"}}, Pillar: map[string]any{"a": "b"}}
		case "web2":
			return Cached{Grains: map[string]any{"os": "SUSE", "ipv4": []any{"10.0.0.2"}}}
		}
		return Cached{}
	}
	tests := []struct {
		kind, expr                string
		matched, unknown, missing []string
	}{
		{TypeGlob, "web*", []string{"web1", "web2"}, nil, nil},
		{TypeList, "web1,gone,db1", []string{"db1", "web1"}, nil, []string{"gone"}},
		{TypeGrain, "os:Debian", []string{"web1"}, []string{"db1", "old"}, nil},
		{TypePillar, "a:b", []string{"web1"}, []string{"db1", "old", "web2"}, nil},
		{TypeIPCIDR, "10.0.0.0/24", []string{"web1", "web2"}, []string{"db1", "old"}, nil},
		{TypeCompound, "not G@os:Debian", []string{"web2"}, []string{"db1", "old"}, nil},
		{TypeCompound, "db* or G@os:Debian", []string{"db1", "web1"}, []string{"old"}, nil},
		{TypeCompound, "web* and G@os:Debian", []string{"web1"}, nil, nil},
		{TypeCompound, "G@os:Debian and I@a:b", []string{"web1"}, []string{"db1", "old"}, nil},
		{TypeCompound, "L@x,web1 and not L@y", []string{"web1"}, nil, []string{"x"}},
		{TypeNodegroup, "g", []string{"web1", "web2"}, []string{"old"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" "+tt.expr, func(t *testing.T) {
			got, err := Select(tt.kind, tt.expr, "", map[string]any{"g": "G@os:* not db1"}, ids, cached)
			if err != nil || !slices.Equal(got.Matched, tt.matched) || !slices.Equal(got.Unknown, tt.unknown) || !slices.Equal(got.Missing, tt.missing) {
				t.Errorf("got %+v, %v", got, err)
			}
			if n := len(got.Greedy()); n != len(tt.matched)+len(tt.unknown) {
				t.Errorf("greedy has %d", n)
			}
		})
	}
	if got, err := Select(TypePCRE, "(", "", nil, ids, nil); err == nil || got.Matched != nil {
		t.Errorf("bad pattern: got %+v, %v", got, err)
	}
	if got, err := Select(TypeGrain, "a:b", "", nil, ids, nil); err != nil || len(got.Unknown) != 4 {
		t.Errorf("nothing cached: got %+v, %v", got, err)
	}
}

// TestRegexCeiling: patterns that take exponential time stop at the limit. The engine's clock and a busy machine make
// the measurement imprecise, so the bound is generous; without the limit these patterns take years.
func TestRegexCeiling(t *testing.T) {
	text := strings.Repeat("a", 200) + "!"
	timeouts := 0
	for _, pattern := range []string{`(?=(a+)+b)x`, `(a|aa)+(?!x)\1$`, `((a*)*)*\2b`, `(?:(?:a+)+)+(?<!z)b`, `(?>(?:a|a)*b)|(?:a|a)*b`} {
		re, err := CompileRegex(pattern)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ok, err := re.MatchStart(text)
		if d := time.Since(start); ok || d > 500*RegexTimeout {
			t.Errorf("%s: got %v, %v after %v", pattern, ok, err, d)
		} else if errors.Is(err, ErrTimeout) {
			timeouts++
		} else if err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	if timeouts == 0 {
		t.Error("no pattern ran into the limit")
	}
	// Regular patterns need no limit.
	for _, pattern := range []string{`(a+)+b`, `(a|aa)+$b`, `(a|a|a|a?)*b`} {
		re, err := CompileRegex(pattern)
		if err != nil || re.linear == nil {
			t.Fatalf("%s: %v, not linear", pattern, err)
		}
		if ok, err := re.MatchStart(text); ok || err != nil {
			t.Errorf("%s: got %v, %v", pattern, ok, err)
		}
	}
}

// TestSubdictBudget uses data whose paths multiply at every level.
func TestSubdictBudget(t *testing.T) {
	var data any = map[string]any{"x": "y"}
	for range 60 {
		data = map[string]any{"a": data, "b": []any{data, data}}
	}
	for _, expr := range []string{strings.Repeat("a:", 60) + "z", strings.Repeat("*:", 60) + "z", strings.Repeat("*:a:", 100) + "z"} {
		start := time.Now()
		r := run{subject: &Subject{}}
		ok, err := r.matchSubdict(map[string]any{"a": data}, expr, ":", SubdictGlob)
		if ok || err != nil && !errors.Is(err, ErrLimit) {
			t.Errorf("%.20s…: got %v, %v", expr, ok, err)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%.20s…: took %v", expr, d)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	e, err := Compile(TypeCompound, `P@os:(?=d)deb and E@web\d$ or I@app:name:shop`, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 8)
	for range 8 {
		go func() {
			for range 50 {
				if ok, err := e.Match(minionSubject()); !ok || err != nil {
					done <- fmt.Errorf("got %v, %v", ok, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func FuzzMatch(f *testing.F) {
	c := loadCases(f)
	for i, row := range c.Match {
		if tgt, ok := row[1].(string); ok && i%97 == 0 {
			f.Add(row[0].(string), tgt, row[2].(string))
		}
	}
	s := minionSubject()
	s.Nodegroups = c.Nodegroups
	f.Fuzz(func(t *testing.T, kind, tgt, delim string) {
		start := time.Now()
		ok, err := Match(kind, tgt, delim, s)
		if ok && err != nil {
			t.Errorf("matched with an error: %v", err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

func FuzzRegex(f *testing.F) {
	c := loadCases(f)
	for _, row := range c.Regex {
		f.Add(row[0], "web1.example.org")
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		re, err := CompileRegex(pattern)
		if err != nil {
			return
		}
		start := time.Now()
		linear, err1 := re.MatchStart(s)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("took %v", d)
		}
		re.once.Do(re.compileBacktracking)
		if re.linear == nil || re.err != nil || err1 != nil || strings.Contains(pattern, "?i") || strings.Contains(pattern, "i:") {
			return
		}
		// Both engines must agree; only the backtracking one may run out of time.
		if again, err := re.matchBacktracking(s); err == nil && again != linear {
			t.Errorf("pattern %q on %q: linear %v, backtracking %v", pattern, s, linear, again)
		}
	})
}

func FuzzGlob(f *testing.F) {
	for _, p := range []string{"*", "web[0-9]?", "[!a-z]*", "[z-a!-x]", "[]-a]", "[--z", "a[b-"} {
		f.Add(p, "web1")
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		got := Glob(pattern, s)
		if !strings.ContainsAny(pattern, "*?[") && got != (pattern == s) {
			t.Errorf("%q on %q: got %v", pattern, s, got)
		}
		if got && !Glob("*"+pattern+"*", s) {
			t.Errorf("%q matches %q, but not with stars around", pattern, s)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	s := minionSubject()
	for _, bm := range []struct{ kind, tgt string }{
		{TypeGlob, "web*"}, {TypePCRE, `web\d+$`}, {TypeList, strings.Repeat("minion.example.org,", 1000) + "web1"},
		{TypeGrain, "os:Deb*"}, {TypeGrainPCRE, "os:(?=d)deb"}, {TypeIPCIDR, "10.0.0.0/8"}, {TypeCompound, "( web* or db* ) and G@os:Debian and not I@app:name:x"},
	} {
		b.Run(bm.kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := Match(bm.kind, bm.tgt, "", s); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

func BenchmarkSelect10000(b *testing.B) {
	ids := make([]string, 10000)
	for i := range ids {
		ids[i] = fmt.Sprintf("web%d.example.org", i)
	}
	grains := map[string]any{"os": "Debian"}
	b.ReportAllocs()
	for b.Loop() {
		sel, err := Select(TypeCompound, "web1* and G@os:Deb*", "", nil, ids, func(string) Cached { return Cached{Grains: grains} })
		if err != nil || len(sel.Matched) != 1111 {
			b.Fatal(len(sel.Matched), err)
		}
	}
}
