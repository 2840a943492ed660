package master_test

import (
	"errors"
	"testing"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
)

// TestDeniedToEverybody checks that no caller can publish what the blacklist names: not the program (and so not
// runners and the reactor), not an order, and not a minion with a grant. The master's own probes and queries are not
// affected.
func TestDeniedToEverybody(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: t.TempDir(),
		Minions: master.MinionOptions{Peer: map[string][]any{".*": {".*"}}},
		Local:   &master.Local{SockDir: shortDir(t), DeniedUsers: []string{"mallory"}, DeniedFunctions: []string{"cmd.*", `system\.reboot`, "saltutil.*", "test.ping"}}})
	x := r.accepted("x", 1).subscribe()
	for _, c := range []struct {
		job    master.Job
		denied bool
	}{
		{master.Job{Fun: "cmd.run", Args: []any{"id"}}, true}, {master.Job{Fun: "system.reboot", User: "root"}, true}, {master.Job{Fun: "system.reboots"}, false},
		{master.Job{Steps: []master.Step{{Fun: "test.echo", Args: []any{"a"}}, {Fun: "cmd.run", Args: []any{"id"}}}}, true},
		{master.Job{Fun: "test.echo", Args: []any{"a"}, User: "mallory"}, true}, {master.Job{Fun: "test.echo", Args: []any{"a"}, User: "root"}, false},
	} {
		c.job.Tgt = "x"
		_, err := r.Publish(within(t), c.job)
		if errors.Is(err, master.ErrDenied) != c.denied || !c.denied && err != nil {
			t.Errorf("publish %+v: %v", c.job, err)
		}
		run, err := r.Submit(within(t), c.job)
		if errors.Is(err, master.ErrDenied) != c.denied || !c.denied && err != nil {
			t.Errorf("submit %+v: %v", c.job, err)
		}
		if err == nil {
			run.Close()
		}
		_, err = r.PlaceOrder(within(t), master.Order{Job: c.job})
		if errors.Is(err, master.ErrDenied) != c.denied || !c.denied && err != nil {
			t.Errorf("cast %+v: %v", c.job, err)
		}
	}
	for fun, may := range map[string]bool{"test.echo": true, "cmd.run": false, "test.echo,cmd.run": false, "system.reboot": false} {
		for _, cmd := range []string{"minion_pub", "minion_publish"} {
			if cmd == "minion_publish" && may {
				continue // minion_publish would wait for answers
			}
			v, err := x.call(object{"cmd": cmd, "id": "x", "fun": fun, "arg": []any{"a"}, "tgt": "x", "tgt_type": "glob", "ret": ""})
			got, _ := v.(object)
			jid, _ := got["jid"].(string)
			if err != nil || protocol.ValidJID(jid) != may || !may && len(got) > 0 {
				t.Errorf("%s %s: %v %v", cmd, fun, v, err)
			}
		}
	}
	if err := r.Rotate(within(t)); err != nil {
		t.Error(err)
	}
}
