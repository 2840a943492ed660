package ratelimit

import (
	"net/netip"
	"time"
)

const (
	// sourceShare is the ratio of the limit of failed attempts per address to the limit per name.
	sourceShare = 10
	// maxName is how many bytes of a name are significant.
	maxName = 100
)

// Attempts limits failed log-ins: per name and address and, ten times higher, per address. So a correct
// password is not refused because others behind the same proxy have tried other names.
type Attempts struct{ names, sources *Limiter }

// attempt is a name that is tried from an address.
type attempt struct {
	source netip.Prefix
	name   string
}

// NewAttempts allows rate failures of a name per second, and burst at once. A rate below 0 means no limit.
func NewAttempts(rate, burst float64) *Attempts {
	return &Attempts{names: New(rate, burst), sources: New(rate*sourceShare, burst*sourceShare)}
}

// Try reports whether a peer ("ip:port") may try a name. If so, call proven if the credentials are correct.
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
