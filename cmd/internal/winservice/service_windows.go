package winservice

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
)

// Event ids of the service in the event log. pkg/windows/install.ps1 registers the source.
const (
	eventStarted = 1
	eventStopped = 2
	eventFailed  = 3
)

// exitFailed is the exit code if the service manager cannot start the service.
const exitFailed = 1

// A journal records events for the administrator in the event log.
type journal interface {
	Info(id uint32, text string) error
	Error(id uint32, text string) error
}

// noJournal replaces an event log that cannot be opened.
type noJournal struct{}

func (noJournal) Info(uint32, string) error  { return nil }
func (noJournal) Error(uint32, string) error { return nil }

// handler runs a program for the service manager.
type handler struct {
	work func(ctx context.Context) int
	log  journal
}

// Serve runs a program as a service until it ends or the service manager stops it. It returns the exit code.
func Serve(name string, work func(ctx context.Context) int) int {
	h := &handler{work, noJournal{}}
	if log, err := eventlog.Open(name); err == nil {
		defer log.Close()
		h.log = log
	}
	if err := svc.Run(name, h); err != nil {
		_ = h.log.Error(eventFailed, fmt.Sprintf("Cannot run as a service: %v", err))
		return exitFailed
	}
	return 0
}

// stopHint is how long a stop may take, as reported to the service manager.
const stopHint = 30 * time.Second

// Execute implements svc.Handler. A non-zero exit code is reported as service-specific, so that the service manager
// applies its recovery actions.
func (h *handler) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (specific bool, code uint32) {
	const accepted = svc.AcceptStop | svc.AcceptShutdown
	status <- svc.Status{State: svc.StartPending}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- h.work(ctx) }()
	status <- svc.Status{State: svc.Running, Accepts: accepted}
	_ = h.log.Info(eventStarted, "The minion has started.")
	for {
		select {
		case n := <-ended:
			status <- svc.Status{State: svc.StopPending}
			if n == 0 {
				_ = h.log.Info(eventStopped, "The minion has stopped.")
				return false, 0
			}
			_ = h.log.Error(eventFailed, fmt.Sprintf("The minion ended with the exit code %d. Its log file says why.", n))
			return true, uint32(n)
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				status <- r.CurrentStatus
			case svc.Stop, svc.Shutdown:
				status <- svc.Status{State: svc.StopPending, WaitHint: uint32(stopHint.Milliseconds())}
				cancel()
			}
		}
	}
}
