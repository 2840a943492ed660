package master_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
)

// TestCVE_2024_38822_TokenOfAFormerKey covers T26 for a token that was valid once: after another key is accepted for
// the id, a token signed with the former key is refused in the former session and in the new one.
func TestCVE_2024_38822_TokenOfAFormerKey(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	former := r.accepted("m", 1)
	if err := r.Keys().Delete("m"); err != nil {
		t.Fatal(err)
	}
	now := r.accepted("m", 2)
	for _, cmd := range saltFuncs {
		if cmd == "revoke_auth" {
			continue // with the right token it would end the minion's session
		}
		for what, session := range map[string]*minion{"former": former, "new": now} {
			e := forge(t, session, "m", "both", map[string]any{"cmd": cmd, "tok": former.requester.Token})
			if v, err := session.sendValue(e); err != nil || v != "bad load" {
				t.Errorf("%s with the former token under the %s session: %v %v", cmd, what, v, err)
			}
		}
	}
	now.must(map[string]any{"cmd": "_file_envs"})
}

// TestCVE_2022_22941_RuleBoundsTheTarget checks that a minion with a peer rule for some minions can publish only to
// these, whatever target it names. A job is either refused or published to all minions that the target matches. It is
// never published to other minions or silently to only some of the matched ones.
func TestCVE_2022_22941_RuleBoundsTheTarget(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Security: master.SecurityOptions{AuthRate: -1},
		Minions:  master.MinionOptions{Peer: map[string][]any{"z": {map[string]any{"a*": []any{`test\..*`}}}}}})
	asker := r.accepted("z", 1)
	ids := []string{"z"}
	for i := range 12 {
		id := fmt.Sprintf("%c%d", 'a'+i%3, i)
		ids = append(ids, id)
		if err := r.Keys().Preseed(id, testKey(t, 1).Public().Text()); err != nil {
			t.Fatal(err)
		}
	}
	rnd := rand.New(rand.NewPCG(7, 8))
	word := func() string {
		return []string{"a*", "b*", "c3", "a0", "*", "a[0-3]", "not a*", "z", "?1", "nobody", "E@a.*", "E@[ab].*", "L@a0,b1", "G@os:x or a*", "( a* )", "a* and not a0"}[rnd.IntN(16)]
	}
	published, refused := 0, 0
	for range 3000 {
		kind := []string{"glob", "pcre", "list", "compound"}[rnd.IntN(4)]
		tgt := word()
		switch {
		case kind == "compound" && rnd.IntN(2) == 0:
			tgt += []string{" or ", " and ", " and not "}[rnd.IntN(3)] + word()
		case kind == "list":
			tgt = ids[rnd.IntN(len(ids))] + "," + ids[rnd.IntN(len(ids))]
		case kind == "pcre":
			tgt = []string{"a.*", ".*", "[ab].*", "a0|b1", "(?!b).*", "b.*"}[rnd.IntN(6)]
		}
		meant, err := r.Match(kind, tgt)
		if err != nil {
			continue // not a valid target
		}
		got, _ := asker.must(map[string]any{"cmd": "minion_pub", "fun": "test.ping", "arg": []any{}, "tgt": tgt, "tgt_type": kind, "ret": ""}).(map[string]any)
		within := !slices.ContainsFunc(meant, func(id string) bool { ok, _ := path.Match("a*", id); return !ok })
		to, _ := got["minions"].([]any)
		if !within {
			refused++
			if len(got) != 0 {
				t.Fatalf("%s %q means %v and was published to %v", kind, tgt, meant, to)
			}
			continue
		}
		if len(meant) > 0 {
			published++
			if fmt.Sprint(to) != fmt.Sprint(meant) {
				t.Fatalf("%s %q means %v and was published to %v", kind, tgt, meant, got)
			}
		}
	}
	if published < 300 || refused < 300 {
		t.Errorf("%d published and %d refused", published, refused)
	}
}

// TestCVE_2023_20897_PanicEndsNoConnection covers T11 for unforeseen errors: a request that makes the master panic is
// answered, and other minions on the same listener are still served.
func TestCVE_2023_20897_PanicEndsNoConnection(t *testing.T) {
	boom := master.Acceptor{Name: "boom", Judge: func(_ context.Context, a master.Applicant) (master.Verdict, error) {
		if a.ID == "bad" {
			panic("boom")
		}
		return master.Verdict{}, nil
	}}
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true,
		Acceptors: []master.Acceptor{boom}}, Security: master.SecurityOptions{AuthRate: -1}})
	good, bad := r.accepted("good", 1), r.newMinion("bad", 2)
	for range 100 {
		load := map[string]any{"cmd": "_auth", "id": "bad", "nonce": protocol.NewNonce(), "pub": testKey(t, 2).Public().Text()}
		if v, err := bad.sendValue(map[string]any{"enc": "clear", "load": load, "version": 3}); err != nil || v != "Some exception handling minion payload" {
			t.Fatal(v, err)
		}
		good.must(map[string]any{"cmd": "_file_envs"})
	}
}
