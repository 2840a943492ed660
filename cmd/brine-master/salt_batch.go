package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/protocol/payload"
)

// runBatch runs the job on batches of minions. As stock does in this mode, it prints each return with its job id and
// return code (salt/cli/batch.py).
func (s *saltCmd) runBatch(ctx context.Context, size string) error {
	highest := 0
	var fail error
	o := s.batchOptions(size)
	o.Down = func(ids []string) {
		for _, id := range ids {
			fmt.Fprintf(s.Out, "Minion %s did not respond. No job will be sent.\n", id)
		}
	}
	o.Started = func(ids []string) {
		ids = slices.Sorted(slices.Values(ids))
		fmt.Fprintf(s.Out, "\nExecuting run on %s\n\n", pytext.Repr(nested.Anys(ids)))
	}
	err := s.client.Batch(ctx, s.cmd, o, func(ret client.Return) {
		if ret.Status != client.Returned {
			fmt.Fprintf(s.Out, "Minion '%s' failed to respond to job sent\n", ret.ID)
			return
		}
		highest = max(highest, ret.Code())
		var data payload.OrderedMap // in the order of stock's json
		if ret.HasRetcode {
			data = append(data, payload.Pair{Key: "retcode", Value: int64(ret.Code())})
		}
		data = append(data, payload.Pair{Key: "jid", Value: ret.JID},
			payload.Pair{Key: ret.ID, Value: s.shownValue(ret)})
		if err := s.print.Print(data, ret.Out, 0); err != nil {
			fail = err
		}
	})
	return errors.Join(s.batchError(err), fail, exitWith(highest))
}

func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &saltcli.ExitError{Code: code}
}

func (s *saltCmd) batchOptions(size string) client.BatchOptions {
	o := client.BatchOptions{RunOptions: s.runOptions(), Size: size,
		Wait: time.Duration(s.Values.Float("batch_wait") * float64(time.Second))}
	if s.Values.Bool("failhard") {
		o.Stop = func(ret client.Return) bool {
			bad := ret.Status != client.Returned || ret.Code() > 0
			if bad {
				s.Log.Error("Minion " + ret.ID +
					" returned with non-zero exit code. Batch run stopped due to failhard")
			}
			return bad
		}
	}
	return o
}

// batchError handles an error that ended a batch.
func (s *saltCmd) batchError(err error) error {
	var size *client.SizeError
	switch {
	case errors.Is(err, client.ErrNoMatch):
		s.noMatch()
		fmt.Fprintln(s.Out, "No minions matched the target.")
		return noMinions()
	case errors.Is(err, client.ErrNoAnswer):
		return noMinions()
	case errors.As(err, &size):
		fmt.Fprintln(s.Out, size.Error())
		return exitWith(saltcli.ExitGeneric)
	}
	return err
}

// runStatic collects all returns and prints them together at the end. Stock silently omits minions that did not
// return. Here, standard error lists them in the words of a batch, and the program fails.
//
// Stock implements it as a batch of all minions, which first looks for connected minions with a separate job. Without
// -b and --failhard, the job itself detects them here, in half the time.
func (s *saltCmd) runStatic(ctx context.Context, size string) error {
	all := map[string]any{}
	var lost []string // lines
	take := func(ret client.Return) {
		if ret.Status == client.Returned {
			all[ret.ID] = s.shownValue(ret)
		} else {
			lost = append(lost, fmt.Sprintf("Minion '%s' failed to respond to job sent\n", ret.ID))
		}
	}
	var err error
	if size == "" && !s.Values.Bool("failhard") {
		err = s.runAll(ctx, take)
	} else {
		o := s.batchOptions(cmp.Or(size, "100%"))
		o.Down = func(ids []string) {
			for _, id := range ids {
				lost = append(lost, fmt.Sprintf("Minion %s did not respond. No job will be sent.\n",
					id))
			}
		}
		err = s.client.Batch(ctx, s.cmd, o, take)
	}
	switch {
	case errors.Is(err, client.ErrNoMatch):
		s.noMatch()
	case err != nil && !errors.Is(err, client.ErrNoAnswer):
		return s.batchError(err)
	}
	out := ""
	if name, ok := s.cmd.Fun.(string); ok && len(name) > 6 && name[:6] == "state." {
		out = "highstate"
	}
	slices.Sort(lost)
	fmt.Fprint(s.Err, strings.Join(lost, ""))
	err = s.show(all, out, 0)
	if err == nil && len(lost) > 0 {
		err = exitWith(saltcli.ExitGeneric)
	}
	return err
}

// runAll runs the job on all minions at once.
func (s *saltCmd) runAll(ctx context.Context, each func(client.Return)) error {
	r, err := s.client.Run(ctx, s.cmd, s.runOptions())
	if err != nil {
		return err
	}
	defer r.Close()
	for ret := range r.Returns(ctx) {
		each(ret)
	}
	return r.Err()
}
