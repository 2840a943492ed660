package orders

import "time"

// Each turn that publishes costs a signature for each job and each probe, be it for one minion or for hundreds.
// turnPace is how far such turns are apart when there are many, so that minions which come one after the other are
// served together; turnBurst is how many follow each other at once.
const turnPace, turnBurst = 20 * time.Millisecond, 10

// pace bounds how often turns publish.
type pace struct {
	at   time.Time
	debt time.Duration
	sent bool // in this turn
}

// published notes that a turn publishes something.
func (p *pace) published() { p.sent = true }

// wait ends a turn, and returns how long the next one waits.
func (p *pace) wait(now time.Time) time.Duration {
	p.debt = max(0, p.debt-now.Sub(p.at))
	p.at = now
	if p.sent {
		p.debt += turnPace
		p.sent = false
	}
	return max(0, p.debt-turnBurst*turnPace)
}
