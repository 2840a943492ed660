package eauth

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// randomArgs is a list of arguments as a user may send it.
func randomArgs(r *rand.Rand) []any {
	words := []string{"ok", "bad", "a=b", "a=ok", "b=", "=c", "a==b", "1=2", "é=1", "a-b.c=[1, x]", "x=1\ny=2", "z=1\n", "_=0x10", "k={a: 1}", "", " a=b"}
	list := make([]any, r.IntN(6))
	for i := range list {
		word := words[r.IntN(len(words))]
		switch r.IntN(8) {
		case 0:
			list[i] = map[string]any{"__kwarg__": true, word: words[r.IntN(len(words))]}
		case 1:
			list[i] = map[string]any{"__kwarg__": []any{true, false, "true", int64(1)}[r.IntN(4)], word: int64(i), "a": nil}
		case 2:
			list[i] = payload.OrderedMap{{Key: word, Value: true}, {Key: "__kwarg__", Value: r.IntN(2) == 0}, {Key: "a", Value: word}}
		case 3:
			list[i] = []any{int64(-7), true, nil, 2.5}[r.IntN(4)]
		case 4:
			list[i] = []any{word, map[string]any{"__kwarg__": true, "a": word}}
		default:
			list[i] = word
		}
	}
	return list
}

// TestRulesSeeWhatMinionsGet: for any list of arguments, rules are compared with the positions and keywords that
// the minion will parse. A rule with exactly these allows the call; one that differs in one of them does not.
func TestRulesSeeWhatMinionsGet(t *testing.T) {
	a := newAuth(t, map[string]any{})
	r := rand.New(rand.NewPCG(1, 2))
	exactly := func(v any) string { return regexp.QuoteMeta(pyobj.Str(pyobj.From(payload.Plain(v)))) }
	compared := 0
	for range 4000 {
		sent := randomArgs(r)
		b, err := payload.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		v, err := payload.Unmarshal(b)
		if err != nil {
			t.Fatal(err)
		}
		published, _ := v.([]any)
		pos, kw := protocol.ParseArgs(published, yaml.ParseValueObject)
		rule := func(other int) []any {
			i := 0
			text := func(v any) any {
				if i++; i-1 == other {
					return exactly(v) + "x"
				}
				return exactly(v)
			}
			args := make([]any, len(pos))
			for i, v := range pos {
				args[i] = text(v)
			}
			kwargs := map[string]any{}
			for name, v := range kw {
				kwargs[name] = text(v)
			}
			return []any{map[string]any{"web*": []any{map[string]any{"test.arg": []any{map[string]any{"args": args, "kwargs": kwargs}}}}}}
		}
		if !a.Allows(rule(-1), "test.arg", sent, "glob", "web1") {
			t.Fatalf("%#v: the rule does not see %#v %#v", sent, pos, kw)
		}
		for other := range len(pos) + len(kw) {
			compared++
			if a.Allows(rule(other), "test.arg", sent, "glob", "web1") {
				t.Fatalf("%#v: a rule for other arguments than %#v %#v allows it", sent, pos, kw)
			}
		}
	}
	if compared < 4000 {
		t.Errorf("%d arguments were compared", compared)
	}
}
