package master_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
)

// hostGrains returns the grains by which the master distinguishes one host from another.
func hostGrains(name, uuid, machine, mac string) object {
	return object{"os": "Debian", "nodename": name, "uuid": uuid, "machine_id": machine, "hwaddr_interfaces": object{"lo": "00:00:00:00:00:00", "eth0": mac},
		"ipv4": []any{"127.0.0.1", "10.0.0." + uuid}}
}

// host creates a minion with the given grains. It requests its pillar and subscribes, as a minion does at its start.
func (r *rig) host(id string, grains object) *minion {
	r.t.Helper()
	m := r.accepted(id, 1)
	m.run = func(j protocol.Job) (any, error) {
		if j.Fun[0] == "grains.item" {
			return grains, nil
		}
		return true, nil
	}
	m.subscribe()
	if _, err := m.pillar(object{"grains": grains}); err != nil {
		r.t.Fatal(err)
	}
	return m
}

func cloneOptions() master.Options {
	return master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Jobs: master.JobOptions{GatherTimeout: 60 * time.Second}}
}

// TestClones checks that a second host with the key and id of a minion is detected when it connects, reported once,
// listed, and forgotten when the key is deleted.
func TestClones(t *testing.T) {
	for name, start := range map[string]func() []*rig{
		"one":     func() []*rig { return []*rig{serve(t, cloneOptions())} },
		"several": func() []*rig { return equals(t, 2, cloneOptions()) },
	} {
		t.Run(name, func(t *testing.T) {
			all := start()
			last := all[len(all)-1]
			sub := last.Events().Subscribe(events.SubscribeOptions{Prefix: "brine/clone/"})
			defer sub.Close()
			all[0].host("other", hostGrains("other", "7", "c", "52:54:00:00:00:07"))
			all[0].host("m", hostGrains("first", "1", "same", "52:54:00:00:00:01"))
			last.host("m", hostGrains("second", "2", "same", "52:54:00:00:00:02"))
			e, err := sub.Next(within(t))
			if err != nil || e.Tag != "brine/clone/m" || e.Data["cloned"] != true || e.Data["id"] != "m" {
				t.Fatal(e, err)
			}
			for i, r := range all {
				var got []master.Clone
				eventually(t, "listed", func() bool {
					got, err = r.Clones(t.Context())
					return err != nil || len(got) > 0
				})
				if err != nil || len(got) != 1 || got[0].Since.IsZero() {
					t.Fatal(i, got, err)
				}
				slices.SortFunc(got[0].Hosts, func(a, b master.CloneHost) int { return int(a.UUID[0]) - int(b.UUID[0]) })
				got[0].Since = time.Time{}
				want := []master.Clone{{ID: "m", Hosts: []master.CloneHost{
					{Name: "first", MachineID: "same", UUID: "1", HWAddrs: []string{"52:54:00:00:00:01"}, IPv4: []string{"10.0.0.1"}},
					{Name: "second", MachineID: "same", UUID: "2", HWAddrs: []string{"52:54:00:00:00:02"}, IPv4: []string{"10.0.0.2"}}}}}
				if d := cmp.Diff(want, got); d != "" {
					t.Error(i, d)
				}
			}
			last.CheckClones(within(t), "m", false, time.Minute)
			last.CheckClones(within(t), "m", true, time.Minute)
			if n := sub.Waiting(); n > 0 {
				e, err := sub.Next(within(t))
				t.Errorf("told again: %d, %v, %v", n, e, err)
			}
			if err := last.Keys().Delete("m"); err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				eventually(t, "forgotten", func() bool {
					got, err := r.Clones(t.Context())
					return err == nil && len(got) == 0
				})
			}
		})
	}
}

// TestClonesEnd checks that the master forgets a clone when only one of the hosts has answered for some time.
func TestClonesEnd(t *testing.T) {
	r := serve(t, cloneOptions())
	sub := r.Events().Subscribe(events.SubscribeOptions{Prefix: "brine/clone/"})
	defer sub.Close()
	first := r.host("m", hostGrains("first", "1", "", ""))
	second := r.host("m", hostGrains("second", "2", "", ""))
	if e, err := sub.Next(within(t)); err != nil || e.Data["cloned"] != true {
		t.Fatal(e, err)
	}
	r.CheckClones(within(t), "m", true, time.Minute)
	second.sub.Close()
	eventually(t, "one is left", func() bool { return r.Subscribers() == 1 })
	asked := len(first.got())
	eventually(t, "it is forgotten", func() bool {
		r.CheckClones(within(t), "m", true, 200*time.Millisecond)
		got, err := r.Clones(t.Context())
		return err == nil && len(got) == 0
	})
	if n := len(first.got()) - asked; n < 3 {
		t.Errorf("after %d answers", n)
	}
	if e, err := sub.Next(within(t)); err != nil || e.Data["cloned"] != false {
		t.Fatal(e, err)
	}
}

// TestNoClones checks cases that are not clones: a host with two connections, a host that reconnects, a host with
// additional network interfaces, and a host that replaced another one.
func TestNoClones(t *testing.T) {
	all := equals(t, 2, cloneOptions())
	sub := all[0].Events().Subscribe(events.SubscribeOptions{Prefix: "brine/clone/"})
	defer sub.Close()
	same := hostGrains("first", "1", "a", "52:54:00:00:00:01")
	all[0].host("two", same)
	all[1].host("two", same)

	again := all[0].host("again", same)
	again.sub.Close()
	again.subscribe()

	cards := hostGrains("first", "1", "a", "52:54:00:00:00:01")
	all[0].host("cards", cards).sub.Close()
	more := hostGrains("first", "1", "a", "52:54:00:00:00:01")
	more["hwaddr_interfaces"] = object{"docker0": "02:42:ac:11:00:02", "eth1": "52:54:00:00:00:01"}
	all[1].host("cards", more)

	all[0].host("place", hostGrains("old", "1", "a", "52:54:00:00:00:01")).sub.Close()
	all[1].host("place", hostGrains("new", "2", "b", "52:54:00:00:00:02"))

	all[0].host("plain", object{"os": "Debian"})
	all[1].host("plain", same)
	for _, id := range []string{"two", "again", "cards", "place", "plain"} {
		all[0].CheckClones(within(t), id, false, 300*time.Millisecond)
	}
	for _, r := range all {
		if got, err := r.Clones(t.Context()); err != nil || len(got) > 0 {
			t.Error(got, err)
		}
	}
	if n := sub.Waiting(); n > 0 {
		e, err := sub.Next(within(t))
		t.Errorf("false alarm: %v %v", e, err)
	}
}
