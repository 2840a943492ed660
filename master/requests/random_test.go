package requests

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestT23RandomTargets: whatever target a minion with a rule for some minions names, the job reaches exactly the
// minions that the rule was checked for: all that the target matches, if all are within the rule, and otherwise
// none. make rule-proof tries a million targets.
func TestT23RandomTargets(t *testing.T) {
	total := 20_000
	if s := os.Getenv("BRINE_RULE_PROOF"); s != "" {
		var err error
		if total, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	p, f := newPeers(t, map[string][]any{"a": {object{"web* or G@kind:db1": []any{"test.ping"}}}})
	f.add("web2", object{"kind": "other"}, object{"secret": "of-web2"})
	f.add("x9", object{"kind": "web1"}, object{"secret": "of-x9"})
	within := map[string]bool{"web1": true, "web2": true, "db1": true}
	rnd := rand.New(rand.NewPCG(22941, 1))
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	ids := []string{"a", "db1", "web1", "web2", "x9", "nobody", "web", "WEB1", "*"}
	glob := func() string {
		return pick("", "w", "web", "d", "x", "?", "*", "[w-x]", "[!a]") + pick("", "*", "?", "e*", "b?", "1", "[12]", "*1", "9")
	}
	regex := func() string {
		return pick("", "^", "(?!web)", "(?i)", "(?:") + pick("w", "web", ".", "[dw]", "a|d", "x9|w") + pick("", ".*", ".", "\\d", "1$", "eb[12]")
	}
	word := func() string {
		switch rnd.IntN(7) {
		case 0:
			return "E@" + regex()
		case 1:
			return "L@" + pick(ids...) + "," + pick(ids...)
		case 2:
			return "G@kind:" + pick("web1", "db1", "*", "w*", "other", "")
		case 3:
			return "P@kind:" + regex()
		case 4:
			return "I@secret:of-" + pick(ids...)
		case 5:
			return "N@" + pick("group", "all")
		}
		return glob()
	}
	compound := func() string {
		var s strings.Builder
		for i := range 1 + rnd.IntN(4) {
			if i > 0 {
				s.WriteString(pick(" and ", " or ", " and not ", " or not ", " "))
			}
			s.WriteString(pick("", "", "", "not ", "( ") + word() + pick("", "", "", " )"))
		}
		return s.String()
	}
	published, refused, different := 0, 0, map[string]bool{}
	for range total {
		kind := pick("glob", "pcre", "list", "compound", "compound", "compound", "grain", "grain_pcre", "pillar", "pillar_exact", "")
		var tgt any
		switch kind {
		case "glob", "":
			tgt = glob()
		case "pcre":
			tgt = regex()
		case "list":
			list := []any{pick(ids...), pick(ids...)}
			if tgt = list; rnd.IntN(2) == 0 {
				tgt = fmt.Sprintf("%s,%s", list...)
			}
		case "compound":
			tgt = compound()
		case "grain":
			tgt = "kind:" + pick("web1", "db1", "*", "other")
		case "grain_pcre":
			tgt = "kind:" + regex()
		default:
			tgt = "secret:of-" + pick(ids...)
		}
		meant, err := f.Match(kind, tgt)
		if err != nil {
			continue
		}
		if len(different) < total/100 {
			different[kind+" "+fmt.Sprint(tgt)] = true
		}
		j := PeerJob{Asker: "a", Calls: []PeerCall{{Fun: "test.ping"}}, TgtType: kind, Tgt: tgt}
		if !p.allowsJob(&j) {
			refused++
			continue
		}
		published++
		if i := slices.IndexFunc(meant, func(id string) bool { return !within[id] }); i >= 0 {
			t.Fatalf("%s %q means %v and was allowed", kind, tgt, meant)
		}
		if to, err := f.Match(j.TgtType, j.Tgt); err != nil || !slices.Equal(to, meant) {
			t.Fatalf("%s %q means %v, and %s %q is published to %v, %v", kind, tgt, meant, j.TgtType, j.Tgt, to, err)
		}
	}
	if published < total/10 || refused < total/10 || len(different) < total/1000 {
		t.Errorf("%d published, %d refused, %d different targets", published, refused, len(different))
	}
	t.Logf("%d published, %d refused, %d and more different targets", published, refused, len(different))
}
