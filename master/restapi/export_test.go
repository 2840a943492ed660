package restapi

import "time"

// Patterns are the requests that are served.
func (s *Server) Patterns() []string { return s.patterns }

// FakeIdle sets the interval of a stream's keep-alives; restore sets it back.
func FakeIdle(d time.Duration) (restore func()) {
	old := idle
	idle = d
	return func() { idle = old }
}
