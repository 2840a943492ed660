package requests

import "errors"

// ErrDropped is returned by answers that must not be acknowledged: the connection closes without one, and the minion
// tries again.
var ErrDropped = errors.New("request is not acknowledged")

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
}
