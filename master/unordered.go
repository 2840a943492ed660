package master

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

const (
	// DefaultMaxUnordered is Options.MaxUnordered where it is 0.
	DefaultMaxUnordered = 1 << 30
	// unorderedBlock is what a return counts at least: the job cache keeps each in a file of its own.
	unorderedBlock = 4 << 10
)

// unexpectedKey marks the return of a minion that the job did not name, in the store and in the event.
const unexpectedKey = "unexpected"

var (
	// errLater makes the connection close without an answer and without a line in the log for each try.
	errLater = errors.New("request is not acknowledged yet")
	// errNotMeant is returned for returns of minions that a job cannot have meant.
	errNotMeant = errors.New("the job is not for this minion")
)

// unordered charges a return that no job of this master asked for to its minion. errLater says that the minion has sent too much
// within the hour; its spool keeps the return.
func (m *Master) unordered(id string, load map[string]any) error {
	size := max(payload.Size(load), unorderedBlock)
	// guard: returns-nobody-ordered TestUnorderedReturnsAreBounded instead: true
	if m.unorderedLimit.AllowNameBytes(id, size, time.Now()) {
		return nil
	}
	m.log.Log(context.Background(), m.hourly(id, "unordered", slog.LevelWarn), "returns that no job asked for are not taken now: the minion sends more than max_unordered_size an hour",
		"minion", id, "bytes", size, "limit", m.opts.MaxUnordered)
	return errLater
}

// invited reports whether a job names a minion that returns for it. If the job has a target that depends on what the minion is, such as
// its grains, a minion that it does not name may be meant all the same: the master may know old ones. errNotMeant says that it cannot be.
func (m *Master) invited(ctx context.Context, jid, id string, job knownJob) (bool, error) {
	if r := m.runOf(jid); r != nil && slices.Contains(r.Minions, id) {
		return true, nil
	}
	if _, ok := slices.BinarySearch(job.minions, id); ok {
		return true, nil
	}
	// A job may have got more minions since it was read: salt --batch publishes under one job id.
	stored, err := m.store.Job(ctx, jid)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil // of a master that lost it, or of none
	case err != nil:
		return true, nil // nobody can tell
	case slices.Contains(stored.Minions, id) || slices.Contains(stored.Missing, id):
		return true, nil
	}
	means, byID := m.mayMean(stored, id)
	// guard: returns-for-others-jobs TestReturnsOfOthersJobs
	if !means && byID {
		return false, fmt.Errorf("%w: its target is %.80v", errNotMeant, stored.Tgt)
	}
	return means, nil
}

// mayMean reports whether the target of a job means a minion as far as the master knows it, and whether the minion's id alone decided.
func (m *Master) mayMean(j store.Job, id string) (means, byID bool) {
	s := m.subject(id)
	byID = true
	watched := target.Subject{ID: id, Nodegroups: s.Nodegroups,
		Grains: func() map[string]any { byID = false; return s.Grains() },
		Pillar: func() map[string]any { byID = false; return s.Pillar() },
	}
	means, err := target.Match(j.TgtType, j.Tgt, fields.Text(j.Load, "delimiter"), watched)
	return means, byID && err == nil
}

// judgeReturn decides about a return for a job id that the minion names. It marks a return that the job did not ask for and charges it
// to the minion.
func (m *Master) judgeReturn(ctx context.Context, v protocol.Verified, jid string, load map[string]any, now time.Time) (knownJob, error) {
	job, err := m.knownJob(ctx, jid, now)
	if err != nil {
		return job, err
	}
	invited, err := m.invited(ctx, jid, v.ID(), job)
	if err != nil {
		return job, err
	}
	delete(load, unexpectedKey) // it is the master's word
	if invited {
		return job, nil
	}
	load[unexpectedKey] = true
	return job, m.unordered(v.ID(), load)
}
