package winservice

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/windows/svc"
)

// events is an event log in memory.
type events []string

func (e *events) Info(id uint32, text string) error {
	*e = append(*e, fmt.Sprintf("%d %s", id, text))
	return nil
}

func (e *events) Error(id uint32, text string) error { return e.Info(id, text) }

// TestService: the service manager starts the program, queries its state, and stops it. The exit code of a program
// that ends is reported.
func TestService(t *testing.T) {
	var log events
	requests, status := make(chan svc.ChangeRequest), make(chan svc.Status)
	h := &handler{func(ctx context.Context) int {
		<-ctx.Done()
		return 0
	}, &log}
	done := make(chan uint32)
	execute := func() {
		_, code := h.Execute(nil, requests, status)
		done <- code
	}
	go execute()
	next := func(want svc.State) {
		t.Helper()
		if s := <-status; s.State != want {
			t.Errorf("the state is %d, not %d", s.State, want)
		}
	}
	next(svc.StartPending)
	next(svc.Running)
	requests <- svc.ChangeRequest{Cmd: svc.Interrogate, CurrentStatus: svc.Status{State: svc.Running}}
	next(svc.Running)
	requests <- svc.ChangeRequest{Cmd: svc.Stop}
	next(svc.StopPending)
	next(svc.StopPending)
	if code := <-done; code != 0 {
		t.Errorf("stopped with %d", code)
	}
	h.work = func(context.Context) int { return 7 }
	go execute()
	next(svc.StartPending)
	next(svc.Running)
	next(svc.StopPending)
	if code := <-done; code != 7 {
		t.Errorf("ended with %d", code)
	}
	if d := cmp.Diff(events{"1 The minion has started.", "2 The minion has stopped.", "1 The minion has started.",
		"3 The minion ended with the exit code 7. Its log file says why."}, log); d != "" {
		t.Error(d)
	}
}
