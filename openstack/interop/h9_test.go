//go:build openstack

package interop

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

const (
	// fewServers are those of make openstack, manyServers those of make openstack-scale.
	fewServers  = 50
	manyServers = 500
	// pollingServers are as many polling servers as two processors have a Heat for, and pollingLimit is how long more of them are tried.
	pollingServers, pollingLimit = 50, 8 * time.Minute
	// restartCost is what a drained restart of one of two engines may add to the time that all deployments take.
	restartCost = 0.10
	// pause is how long each deployment takes at least.
	pause = time.Second
	// The start of an engine takes processor time that is a tenth of what 50 servers with short deployments take. So make openstack measures
	// the restart with restartServers of them, whose deployments take restartPause.
	restartServers, restartPause = 10, 10 * time.Second
)

// TestHeatH9 deploys to 50 servers, or to 500 with BRINE_OPENSTACK=full, five times in order on each, through one Heat of two engines: each
// deployment is complete exactly once. Then it does so with one engine that an operator restarts with TERM when half is done, which may add
// a tenth to the time: with all of the 500, with some of the 50. With BRINE_OPENSTACK=full, servers are also deployed to as Heat does without
// the plugin, by polling: 50, and then 500, which Heat is not equal to on two processors. It prints what each costs.
func TestHeatH9(t *testing.T) {
	servers, patience, full := fewServers, 10*time.Minute, os.Getenv("BRINE_OPENSTACK") == "full"
	if full {
		servers, patience = manyServers, 60*time.Minute
	}
	// BRINE_OPENSTACK_SERVERS is another number of servers, for smaller machines.
	if s := os.Getenv("BRINE_OPENSTACK_SERVERS"); s != "" {
		var err error
		if servers, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opts := labOptions()
	opts.Engines = engines
	// An engine that ends may take its time for what hundreds of servers do. Heat's default is a minute.
	opts.Heat = map[string]map[string]string{"DEFAULT": {"graceful_shutdown_timeout": "600"}}
	l := startLab(t, opts)
	begin := time.Now()
	c := startCrowd(t, ctx, l, pushed, servers)
	for n := range engines {
		awaitPresent(t, ctx, l.MasterSocket(n), servers)
	}
	t.Logf("%d minions are connected after %.1f s", servers, time.Since(begin).Seconds())
	plain := c.run(t, ctx, "pushed", pause, nil)
	loads := []load{plain}
	part, shortest := c, pause
	if !full {
		part, shortest = c.first(restartServers), restartPause
		plain = part.run(t, ctx, "undisturbed", shortest, nil)
		loads = append(loads, plain)
	}
	restarted := part.run(t, ctx, "restarted", shortest, func() error {
		begin := time.Now()
		err := l.StopEngine(ctx, 1, syscall.SIGTERM)
		t.Logf("an engine was drained in %.1f s", time.Since(begin).Seconds())
		return cmp.Or(err, l.StartEngine(ctx, 1))
	})
	loads = append(loads, restarted)
	if limit := time.Duration(float64(plain.wall) * (1 + restartCost)); restarted.wall > limit {
		t.Errorf("with a drained restart of an engine all took %.1f s, want %.1f s at most", restarted.wall.Seconds(), limit.Seconds())
	}
	c.guest.Close()
	if full {
		for _, n := range []int{min(servers, pollingServers), servers} {
			today := polled
			today.name += strconv.Itoa(n)
			crowd := startCrowd(t, ctx, l, today, n)
			loads = append(loads, crowd.attempt(t, ctx, today.name, pause, pollingLimit))
			crowd.guest.Close()
		}
	}
	printLoads(t, loads...)
}
