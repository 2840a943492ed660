package restapi

import "time"

// Patterns are the requests that are served.
func (s *Server) Patterns() []string { return s.patterns }

// FakeIdle sets after how long a stream gives a sign of life; restore sets it back.
func FakeIdle(d time.Duration) (restore func()) {
	old := idle
	idle = d
	return func() { idle = old }
}
