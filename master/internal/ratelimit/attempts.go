package ratelimit

import (
	"net/netip"
	"time"
)

const (
	// sourceShare is how many times the bound of one name the failed attempts from one address may reach.
	sourceShare = 10
	// maxName is how many bytes of a name tell it from others.
	maxName = 100
)

// Attempts bounds attempts to log in that fail: of one name from one address, and, with a ten times larger bound, of
// all names from there. So a right password is not refused because others behind the same proxy have tried other names.
type Attempts struct{ names, sources *Limiter }

// attempt is a name that is tried from an address.
type attempt struct {
	source netip.Prefix
	name   string
}

// NewAttempts allows so many failures of a name a second, and so many at once. A rate below 0 is no bound.
func NewAttempts(rate, burst float64) *Attempts {
	return &Attempts{names: New(rate, burst), sources: New(rate*sourceShare, burst*sourceShare)}
}

// Try reports whether a name may be tried by a peer ("ip:port"). If it may, proven is to be called when the credentials
// were right.
func (a *Attempts) Try(peer, name string) (proven func(), ok bool) {
	source, now := sourceOf(peer), time.Now()
	key := attempt{source, name[:min(len(name), maxName)]}
	if !a.names.allow(key, now) || !a.sources.allow(source, now) {
		return nil, false
	}
	return func() {
		a.names.giveBack(key)
		a.sources.giveBack(source)
	}, true
}
