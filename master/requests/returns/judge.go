package returns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/brine-salt/brine/master/internal/acks"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// unorderedBlock is what a return counts at least: the job cache keeps each in a file of its own.
const unorderedBlock = 4 << 10

// unexpectedKey marks the return of a minion that the job did not name, in the store and in the event.
const unexpectedKey = "unexpected"

// errNotMeant is returned for returns of minions that a job cannot have meant.
var errNotMeant = errors.New("the job is not for this minion")

// charge charges a return that no job of this master asked for to its minion. acks.ErrLater says that the minion has
// sent too much within the hour; its spool keeps the return.
func (t *Taker) charge(id string, load map[string]any) error {
	size := max(payload.Size(load), unorderedBlock)
	// guard: returns-nobody-ordered TestUnorderedReturnsAreBounded instead: true
	if t.unordered.AllowNameBytes(id, size, time.Now()) {
		return nil
	}
	t.Log.Log(context.Background(), t.Hourly.Level(id, "unordered", slog.LevelWarn),
		"Returns that no job asked for are not taken now: the minion sends more than "+
			"max_unordered_size an hour",
		"minion", id, "bytes", size, "limit", t.MaxUnordered)
	return acks.ErrLater
}

// isInvited reports whether a job names a minion that returns for it. If the job has a target that depends on what the
// minion is, such as its grains, a minion that it does not name may be meant all the same: the master may know old
// ones. errNotMeant says that it cannot be.
func (t *Taker) isInvited(ctx context.Context, jid, id string, job knownJob) (bool, error) {
	if minions, ok := t.Runs.Awaited(jid); ok && slices.Contains(minions, id) {
		return true, nil
	}
	if _, ok := slices.BinarySearch(job.minions, id); ok {
		return true, nil
	}
	// A job may have got more minions since it was read: salt --batch publishes under one job id.
	stored, err := t.Store.Job(ctx, jid)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil // of a master that lost it, or of none
	case err != nil:
		return true, nil // nobody can tell
	case slices.Contains(stored.Minions, id) || slices.Contains(stored.Missing, id):
		return true, nil
	}
	means, byID := t.mayMean(stored, id)
	// guard: returns-for-others-jobs TestReturnsOfOthersJobs
	if !means && byID {
		return false, fmt.Errorf("%w: its target is %.80v", errNotMeant, stored.Tgt)
	}
	return means, nil
}

// mayMean reports whether the target of a job means a minion as far as the master knows it, and whether the minion's id
// alone decided.
func (t *Taker) mayMean(j store.Job, id string) (means, byID bool) {
	s := t.Subjects.Subject(id)
	byID = true
	watched := target.Subject{ID: id, Nodegroups: s.Nodegroups,
		Grains: func() map[string]any { byID = false; return s.Grains() },
		Pillar: func() map[string]any { byID = false; return s.Pillar() },
	}
	means, err := target.Match(j.TgtType, j.Tgt, fields.Text(j.Load, "delimiter"), watched)
	return means, byID && err == nil
}

// judgeReturn decides about a return for a job id that the minion names. It marks a return that the job did not ask for
// and charges it to the minion.
func (t *Taker) judgeReturn(ctx context.Context, v protocol.Verified, jid string,
	load map[string]any, now time.Time) (knownJob, error) {
	job, err := t.knownJob(ctx, jid, now)
	if err != nil {
		return job, err
	}
	invited, err := t.isInvited(ctx, jid, v.ID(), job)
	if err != nil {
		return job, err
	}
	delete(load, unexpectedKey) // it is the master's word
	if invited {
		return job, nil
	}
	load[unexpectedKey] = true
	return job, t.charge(v.ID(), load)
}

// knownJob refuses returns for jobs that never were: a job id of this master, or one of the time for which jobs are
// kept. It says whether an order may be behind the job.
func (t *Taker) knownJob(ctx context.Context, jid string, now time.Time) (knownJob, error) {
	if t.isAwaited(jid) {
		return knownJob{}, nil
	}
	job, known := t.storedJob(ctx, jid, now)
	if known {
		return job, nil
	}
	at, ok := protocol.JID(jid).Time()
	if !ok {
		return job, errors.New("job id is no time")
	}
	if keep := t.KeepJobs; keep > 0 && now.Sub(at) > keep+jidSkew {
		return job, errors.New("job is too old")
	}
	if at.Sub(now) > jidSkew {
		return job, errors.New("job is in the future")
	}
	return job, nil
}
