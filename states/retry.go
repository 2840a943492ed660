package states

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// A retryPlan is the value of the argument retry.
type retryPlan struct {
	until                     bool
	attempts, interval, splay int64
}

// retryOf reads the argument. A value of the wrong type gets Salt's default: 2 attempts 30 seconds apart
// (State.verify_retry_data).
func retryOf(v any) retryPlan {
	p := retryPlan{until: true, attempts: 2, interval: 30}
	switch v := v.(type) {
	case bool:
		if !v {
			p.attempts = 0
		}
	case *pyobj.Dict:
		if b, ok := v.Value("until").(bool); ok {
			p.until = b
		}
		for key, into := range map[string]*int64{"attempts": &p.attempts, "interval": &p.interval, "splay": &p.splay} {
			switch n := v.Value(key).(type) {
			case int64:
				*into = n
			case bool:
				*into = 0
				if n {
					*into = 1
				}
			}
		}
	}
	return p
}

// nextWait returns how long to wait before the next attempt, in seconds. splay adds a random part, so that a fleet
// does not retry in step.
func (p retryPlan) nextWait() int64 {
	if p.splay > 0 {
		return p.interval + rand.Int64N(p.splay+1)
	}
	return p.interval
}

// isMet reports whether a result is the one to wait for. Test mode's None meets neither.
func (p retryPlan) isMet(result any) bool {
	return result == p.until || result != nil && result != p.until && pytext.Truth(result) == p.until
}

// testComment returns the comment of test mode, which does not retry.
func (p retryPlan) testComment(comment any) string {
	text := pytext.Str(comment)
	if !pytext.Truth(comment) {
		text = ""
	}
	return fmt.Sprintf("%s  The state would be retried every %d seconds (with a splay of up to %d seconds) a maximum of %d times or "+
		"until a result of %s is returned", text, p.interval, p.splay, p.attempts, pytext.Str(p.until))
}

// retryState runs a state again until it has the wanted result or the attempts are used up. Comments of all
// attempts and the time between them stay in the record, as in Salt.
func (r *Run) retryState(ctx context.Context, low *Low, rec record, retries int64) (record, error) {
	plan := retryOf(low.d.Value("retry"))
	if pytext.Truth(r.opts["test"]) {
		rec["comment"] = plan.testComment(rec["comment"])
		return rec, nil
	}
	rec = unifyRecord(rec)
	if plan.isMet(rec["result"]) || plan.attempts <= retries {
		return rec, nil
	}
	wait := plan.nextWait()
	r.logRetry(wait)
	if err := sleep(ctx, time.Duration(wait)*time.Second); err != nil {
		return nil, err
	}
	again, err := r.runChunk(ctx, low, retries+1)
	if err != nil {
		return nil, err
	}
	comment := ""
	if pytext.Truth(again["comment"]) {
		comment = pytext.Str(again["comment"])
	}
	again["comment"] = strings.Join([]string{attemptText(retries, rec), comment}, "\n")
	again["duration"] = floatOf(again["duration"]) + floatOf(rec["duration"]) + float64(wait*1000)
	if retries == 1 {
		again["start_time"] = rec["start_time"]
	}
	return again, nil
}

// logRetry logs that a state runs again after wait seconds.
func (r *Run) logRetry(wait int64) {
	r.env.Logger().Info("State result does not match retry until value, state will be re-run in "+strconv.FormatInt(wait, 10)+" seconds", "jid", r.jid)
}

// attemptText returns Salt's line for one attempt.
func attemptText(n int64, rec record) string {
	return fmt.Sprintf(`Attempt %d: Returned a result of "%s", with the following comment: "%s"`, n, pytext.Str(rec["result"]), pytext.Str(rec["comment"]))
}

// floatOf returns a duration of a record, 0 if it has none.
func floatOf(v any) float64 {
	f, _ := v.(float64)
	return f
}

// sleep waits for d. If ctx ends earlier it returns the reason.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
