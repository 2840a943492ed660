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

// unorderedBlock is the minimum that a return counts, because the job cache stores each in its own file.
const unorderedBlock = 4 << 10

// unexpectedKey marks a return from a minion that the job does not name, in the store and in the event.
const unexpectedKey = "unexpected"

// errNotMeant is returned for returns from minions that a job cannot target.
var errNotMeant = errors.New("the job is not for this minion")

// charge counts an unsolicited return against its minion's limit. acks.ErrLater means that the minion exceeds
// it for this hour; its spool keeps the return.
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

// isInvited reports whether a job names the minion that returns. If the target depends on properties of
// minions, such as grains, other minions may match too, because the master's grains may be out of date. It
// returns errNotMeant if the minion cannot match.
func (t *Taker) isInvited(ctx context.Context, jid, id string, job knownJob) (bool, error) {
	if minions, ok := t.Runs.Awaited(jid); ok && slices.Contains(minions, id) {
		return true, nil
	}
	if _, ok := slices.BinarySearch(job.minions, id); ok {
		return true, nil
	}
	// The job may have more minions since it was read: salt --batch publishes repeatedly under one job id.
	stored, err := t.Store.Job(ctx, jid)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil // this master lost the job, or it never existed
	case err != nil:
		return true, nil // unknown, so the return is accepted
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

// mayMean reports whether a job's target matches a minion, by the master's data, and whether the minion's id
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

// judgeReturn checks a return for a job id. It marks an unsolicited return and charges it to the minion.
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
	delete(load, unexpectedKey) // only the master may set it
	if invited {
		return job, nil
	}
	load[unexpectedKey] = true
	return job, t.charge(v.ID(), load)
}

// knownJob returns what is known of a job, and refuses returns for jobs that never existed: its id must be this
// master's, or from the time for which jobs are kept.
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
		return job, errors.New("job id is not a time")
	}
	if keep := t.KeepJobs; keep > 0 && now.Sub(at) > keep+jidSkew {
		return job, errors.New("job is too old")
	}
	if at.Sub(now) > jidSkew {
		return job, errors.New("job is in the future")
	}
	return job, nil
}
