package master_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
)

// TestRefusedMinionsAreLoggedOnce checks that a refused minion, which signs in again and again, is logged once for each
// reason, and that one refused minion does not hide another. TestHourlyLog in master/internal/ratelimit checks that it
// is logged again after an hour.
func TestRefusedMinionsAreLoggedOnce(t *testing.T) {
	var log testlog.Buffer
	o := announcing()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	o.Keys.MaxPending = 2 // the keys of m and n, whose tokens are used
	o.Keys.MaxMinions = 2
	o.Keys.Acceptors = []master.Acceptor{{Name: "failing", BeforeToken: true, Judge: func(_ context.Context, a master.Applicant) (v master.Verdict, err error) {
		if strings.HasPrefix(a.ID, "unjudged") {
			err = errors.New("no network")
		}
		return v, err
	}}}
	r := serve(t, o)
	refuse := func(m *minion, s protocol.Signin) {
		t.Helper()
		if got := m.signInWith(s); got == protocol.Accepted {
			t.Fatal(m.id, got)
		}
	}
	stolen := newAuthority(t, ecKey(t)).proof(t, ecKey(t), nil)
	stolen.Signer = ecKey(t)
	tokens := map[string]string{}
	for _, id := range []string{"m", "n"} {
		tokens[id] = ensure(t, r, master.MinionSpec{ID: id})
		if got := r.newMinion(id, 1).signInWith(protocol.Signin{JoinToken: tokens[id]}); got != protocol.Accepted {
			t.Fatal(got)
		}
		if err := r.RevokeMinion(within(t), id); err != nil {
			t.Fatal(err)
		}
	}
	for _, reason := range []struct {
		text    string
		prepare func(id string)
		signIn  func(id string)
	}{
		{"Minion may not join", nil, func(id string) { refuse(r.newMinion(id, 1), protocol.Signin{JoinToken: tokens[id]}) }},
		{"Sign-in with another key", nil, func(id string) { refuse(r.newMinion(id, 2), protocol.Signin{}) }},
		{"too many keys wait for acceptance", nil, func(id string) { refuse(r.newMinion("more "+id, 1), protocol.Signin{}) }},
		{"Sign-in refused: key is rejected", func(id string) {
			if err := r.Keys().Reject(id, true, true); err != nil {
				t.Fatal(err)
			}
		}, func(id string) { refuse(r.newMinion(id, 1), protocol.Signin{}) }},
		{"a new minion may not have this id", nil, func(id string) { refuse(r.newMinion("*"+id, 1), protocol.Signin{}) }},
		{"unusable key", nil, func(id string) {
			v, err := r.newMinion(id, 1).sendValue(object{"enc": "clear", "version": int64(3), "load": object{"cmd": "_auth", "id": id, "nonce": protocol.NewNonce(), "pub": "garbage"}})
			if err != nil {
				t.Fatal(v, err)
			}
		}},
		{`msg="Cannot judge minion that wants to join"`, nil, func(id string) { refuse(r.newMinion("unjudged "+id, 1), protocol.Signin{}) }},
		{"proof=certificates", nil, func(id string) { refuse(r.newMinion("proof "+id, 1), protocol.Signin{Proof: stolen}) }},
		// The document is of the same minions, and sealed for another master.
		{"proof=document", nil, func(id string) {
			_, _ = r.newMinion("proof "+id, 1).trySignIn(protocol.Signin{MasterKey: testKey(t, 3).Public(), Proof: protocol.JoinProof{Document: []byte("x")}})
		}},
		{"too many minions", func(string) {
			for i := 0; ; i++ {
				id := fmt.Sprint("connected", i)
				if r.newMinion(id, 1).signInWith(protocol.Signin{JoinToken: ensure(t, r, master.MinionSpec{ID: id})}) == protocol.Full {
					return
				}
			}
		}, func(id string) { refuse(r.newMinion("late "+id, 1), protocol.Signin{}) }},
	} {
		for _, id := range []string{"m", "n"} {
			if reason.prepare != nil {
				reason.prepare(id)
			}
			before := log.String()
			for range 5 {
				reason.signIn(id)
			}
			added := strings.TrimPrefix(log.String(), before)
			if n := strings.Count(added, reason.text); n != 1 {
				t.Errorf("%d lines %q of %s, want 1:\n%s", n, reason.text, id, added)
			}
		}
	}
}
