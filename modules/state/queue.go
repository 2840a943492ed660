package state

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// One state run at a time: others fail, or wait if they are asked to. In Salt waiting runs are files that the minion starts
// later; here they are jobs that wait, and answer under the id that they were published with.

// waitInterval is how often a waiting run looks whether it may begin.
const waitInterval = 100 * time.Millisecond

// others returns the other state runs in progress. With ahead, runs that wait in front of this one count as well.
func others(ctx context.Context, c *modules.Call, ahead bool) []map[string]any {
	v, err := c.Exec(ctx, "saltutil.is_running", "state.*")
	if err != nil {
		return nil
	}
	waiting := c.WaitingRuns.All()
	own := slices.Index(waiting, c.JID)
	var list []map[string]any
	active, _ := v.([]any)
	for _, x := range active {
		job, ok := x.(map[string]any)
		if !ok {
			continue
		}
		jid := pytext.Str(job["jid"])
		at := slices.Index(waiting, jid)
		if jid == c.JID || at >= 0 && !ahead || own >= 0 && at > own {
			continue
		}
		list = append(list, job)
	}
	return list
}

// conflicts returns the texts about the state runs that prevent this one, or an empty list with concurrent.
func conflicts(ctx context.Context, c *modules.Call, concurrent bool) []any {
	list := []any{}
	if concurrent {
		return list
	}
	for _, job := range others(ctx, c, false) {
		jid := pytext.Str(job["jid"])
		list = append(list, fmt.Sprintf(`The function "%s" is running as PID %s and was started at %s with jid %s`,
			pytext.Str(job["fun"]), pytext.Str(job["pid"]), jidTime(jid), jid))
	}
	return list
}

// jidTime returns the time in a job id (salt/utils/jid.py: jid_to_time).
func jidTime(jid string) string {
	if len(jid) != 20 && (len(jid) <= 21 || jid[20] != '_') {
		return ""
	}
	t, err := time.Parse("20060102150405", jid[:14])
	if err != nil {
		return ""
	}
	return t.Format("2006, Jan 02 15:04:05.") + jid[14:20]
}

// checkQueue keeps state runs apart (_check_queue). A conflict is the answer of the function; release must be called after
// the run.
func checkQueue(ctx context.Context, c *modules.Call) (conflict any, err error) {
	queue := c.Value("queue")
	if queue == nil {
		if queue, err = c.Exec(ctx, "config.option", "state_queue", false); err != nil {
			queue = c.Opt("state_queue")
		}
	}
	limit, number := queue.(int64)
	if queue == true || number {
		if ok, err := wait(ctx, c, limit); ok || err != nil {
			return nil, err
		}
	}
	if list := conflicts(ctx, c, pytext.Truth(c.Keywords["concurrent"])); len(list) > 0 {
		c.SetRetcode(codeCompiler)
		return list, nil
	}
	return nil, nil
}

// wait waits until the runs before this one have ended; not if limit or more are there already.
func wait(ctx context.Context, c *modules.Call, limit int64) (bool, error) {
	if n := len(others(ctx, c, true)); limit > 0 && int64(n) >= limit {
		return false, nil
	}
	c.WaitingRuns.Join(c.JID)
	defer c.WaitingRuns.Leave(c.JID)
	tick := time.NewTicker(waitInterval)
	defer tick.Stop()
	for len(others(ctx, c, true)) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return true, nil
}

func running(ctx context.Context, c *modules.Call) (any, error) {
	return conflicts(ctx, c, c.Bool("concurrent")), nil
}
