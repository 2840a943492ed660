// Package rings contains the runner update, which stock does not have. It updates brine minions in rings. Each
// ring is a part of the minions, chosen by a hash of their ids; canary hosts come first. It stops if too many
// minions of a ring fail. docs/update.md describes it.
package rings

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/runner/host"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// ringTag is the tag of the event for a finished ring.
const ringTag = "brine/update/ring"

// statusPause is the interval at which a ring's minions are asked for the state of their update.
const statusPause = time.Second

// funcs has the functions of this package, for one host.
type funcs struct{ *host.Host }

// Module returns the runner update.
func Module(h *host.Host) *modules.Module {
	f := funcs{h}
	return &modules.Module{Name: "update", Doc: "Updates of brine's minions.", Funcs: []modules.Def{
		{Name: "rings", Doc: `Update minions in rings: first the canary hosts, then one part of the minions after the other.

tgt, tgt_type
    The minions.
version
    The version, the newest one of each minion's channel by default.
canary
    Globs of minions that are the first ring.
canary_count
    In each further ring, so many minions are updated before the others.
rings
    Percentages of the minions, by a hash of their ids: each ring has those that were in none before.
pause
    Seconds between two rings.
fail_percent
    It stops when more than so many percent of a ring fail.
settle
    Seconds that the minions of a ring have to sign in with the new version and to answer.

    salt-run update.rings canary='[canary*]' rings='[10, 50, 100]' pause=600 fail_percent=5`,
			Params: []modules.Param{{Name: "tgt", Default: "*"}, {Name: "tgt_type", Default: "glob"}, {Name: "version", Default: ""},
				{Name: "canary", Default: ""}, {Name: "canary_count", Default: int64(0), Type: modules.Int},
				{Name: "rings", Default: []any{int64(10), int64(50), int64(100)}}, {Name: "pause", Default: int64(0)},
				{Name: "fail_percent", Default: int64(0), Type: modules.Int}, {Name: "settle", Default: int64(180)}},
			Run: f.rings},
	}}
}

// plan is the parsed arguments.
type plan struct {
	version       string
	pause, settle time.Duration
	failPercent   int64
}

// A ring is a part of the minions, with their results.
type ring struct {
	name    string
	ids     []string
	updated []string
	failed  map[string]string
}

func (f funcs) rings(ctx context.Context, c *modules.Call) (any, error) {
	if f.Match == nil {
		return nil, host.Needs("list of minions")
	}
	p := plan{version: c.Str("version")}
	var err error
	if p.pause, err = host.Seconds(c, "pause"); err != nil {
		return nil, err
	}
	if p.settle, err = host.Seconds(c, "settle"); err != nil {
		return nil, err
	}
	p.failPercent, _ = c.Value("fail_percent").(int64)
	ids, err := f.Match(c.Str("tgt_type"), c.Value("tgt"))
	if err != nil {
		return nil, err
	}
	count, _ := c.Value("canary_count").(int64)
	list, err := divide(ids, texts(c.Value("canary")), count, c.Value("rings"))
	if err != nil {
		return nil, err
	}
	done := []any{}
	for i := range list {
		r := &list[i]
		if i > 0 && p.pause > 0 && !backoff.Sleep(ctx, p.pause) {
			return nil, context.Cause(ctx)
		}
		if err := f.update(ctx, r, p); err != nil {
			return nil, err
		}
		done = append(done, r.report())
		if f.Fire != nil {
			if err := f.Fire(ctx, ringTag, r.report()); err != nil {
				return nil, err
			}
		}
		// guard: update TestRingsStop
		if int64(len(r.failed))*100 > p.failPercent*int64(len(r.ids)) {
			c.SetRetcode(1)
			return map[string]any{"result": false, "rings": done, "stopped": fmt.Sprintf("%d of %d minions failed in ring %s, more than %d %%",
				len(r.failed), len(r.ids), r.name, p.failPercent)}, nil
		}
	}
	return map[string]any{"result": true, "rings": done}, nil
}

// texts returns a list of strings, or one string as a list.
func texts(v any) (list []string) {
	if s, ok := v.(string); ok && s != "" {
		return []string{s}
	}
	all, _ := v.([]any)
	for _, x := range all {
		list = append(list, pytext.Str(x))
	}
	return list
}

// Place returns a number from 0 to 99 for a minion, by a hash of its id.
func Place(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return int64(binary.BigEndian.Uint64(sum[:]) % 100)
}

// divide divides the minions into rings, in the order of their places. Of each percentage, count minions are a ring of
// their own before the others. Empty rings are left out.
func divide(ids, canary []string, count int64, percentages any) ([]ring, error) {
	parts, ok := percentages.([]any)
	if !ok || len(parts) == 0 {
		return nil, modules.Errorf("cannot update in rings: rings must be a list of percentages, not %v", percentages)
	}
	left := slices.SortedFunc(slices.Values(ids), func(a, b string) int {
		return cmp.Or(int(Place(a)-Place(b)), strings.Compare(a, b))
	})
	var list []ring
	take := func(name string, in func(id string) bool) {
		r := ring{name: name, failed: map[string]string{}}
		left = slices.DeleteFunc(left, func(id string) bool {
			if !in(id) {
				return false
			}
			r.ids = append(r.ids, id)
			return true
		})
		slices.Sort(r.ids)
		if len(r.ids) > 0 {
			list = append(list, r)
		}
	}
	take("canary", func(id string) bool {
		return slices.ContainsFunc(canary, func(glob string) bool { return target.Glob(glob, id) })
	})
	before := int64(0)
	for _, x := range parts {
		percent, ok := payload.Int(x)
		if !ok || percent <= before || percent > 100 {
			return nil, modules.Errorf("cannot update in rings: the percentages must grow, up to 100: %v", parts)
		}
		before = percent
		name, n := fmt.Sprintf("%d %%", percent), count
		take("canary of "+name, func(id string) bool {
			n--
			return n >= 0 && Place(id) < percent // left begins with the lowest places
		})
		take(name, func(id string) bool { return Place(id) < percent })
	}
	return list, nil
}

func (r *ring) report() map[string]any {
	failed := map[string]any{}
	for id, why := range r.failed {
		failed[id] = why
	}
	return map[string]any{"ring": r.name, "minions": nested.Anys(r.ids), "updated": nested.Anys(r.updated), "failed": failed}
}

// update orders the update of a ring. It waits until each minion reports the new version, or that it rolled
// back.
func (f funcs) update(ctx context.Context, r *ring, p plan) error {
	args := []any{}
	if p.version != "" {
		args = append(args, p.version)
	}
	answers, err := f.Command(ctx, host.Job{Tgt: nested.Anys(r.ids), TgtType: "list", Fun: "agent.update", Args: args, Timeout: p.settle})
	if err != nil {
		return err
	}
	waiting := map[string]string{} // expected version by minion
	for _, id := range r.ids {
		a, ok := answers[id]
		value, isMap := payload.Map(a.Value)
		switch {
		case !ok || a.Failed:
			r.failed[id] = "no answer"
		case !isMap || a.Retcode != 0:
			r.failed[id] = pytext.Str(a.Value)
		case value["from"] == value["to"]:
			r.updated = append(r.updated, id) // it runs the new version
		default:
			waiting[id] = pytext.Str(value["to"])
		}
	}
	until := time.Now().Add(p.settle)
	for len(waiting) > 0 {
		if err := f.askStatus(ctx, r, waiting); err != nil {
			return err
		}
		if len(waiting) == 0 || time.Now().After(until) {
			break
		}
		if !backoff.Sleep(ctx, statusPause) {
			return context.Cause(ctx)
		}
	}
	for id := range waiting {
		r.failed[id] = fmt.Sprintf("it did not answer with version %s within %s", waiting[id], p.settle)
	}
	slices.Sort(r.updated)
	return nil
}

// askStatus asks the pending minions for their state. An answer proves that the minion receives this master's
// jobs.
func (f funcs) askStatus(ctx context.Context, r *ring, waiting map[string]string) error {
	answers, err := f.Command(ctx, host.Job{Tgt: nested.Anys(slices.Sorted(maps.Keys(waiting))), TgtType: "list", Fun: "agent.status"})
	if err != nil {
		return err
	}
	for id, a := range answers {
		value, ok := payload.Map(a.Value)
		want, asked := waiting[id]
		if !ok || !asked || a.Failed || a.Retcode != 0 || value["trial"] != nil {
			continue
		}
		delete(waiting, id)
		if value["version"] == want {
			r.updated = append(r.updated, id)
		} else {
			r.failed[id] = pytext.Str(value["result"])
		}
	}
	return nil
}
