package restapi

import (
	"time"

	"github.com/brine-salt/brine/master/internal/ratelimit"
)

// Patterns are the requests that are served.
func (s *Server) Patterns() []string { return s.patterns }

// FakeIdle sets the interval of a stream's keep-alives; restore sets it back.
func FakeIdle(d time.Duration) (restore func()) {
	old := idle
	idle = d
	return func() { idle = old }
}

// FakeBodies sets how many bytes of bodies an address without a token may ever send.
func (s *Server) FakeBodies(burst float64) { s.bodies = ratelimit.New(1e-9, burst) }
