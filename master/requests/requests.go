package requests

import "github.com/brine-salt/brine/master/requests/returns"

// Answers are all types of this package: the answers to what minions ask.
type Answers struct {
	Mine       Mine
	Files      Files
	Pushed     Pushed
	Pillar     Pillar
	Config     Config
	Events     *Events
	Peers      *Peers
	Revocation Revocation
	Returns    *returns.Taker
	Jobs       Jobs
}
