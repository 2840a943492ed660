package minion

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// contact is a sign-in under way.
type contact struct {
	until time.Time   // when it gives up
	told  atomic.Bool // that the master cannot be reached
}

// unreachable logs why no connection to a master could be made: each attempt at debug, the first of a sign-in as a
// warning, long before the sign-in has failed.
func (l *link) unreachable(a master, addr string, err error) {
	l.log.Debug("Cannot connect to the master", "master", a.name, "addr", addr, "err", err)
	if c := l.contact.Load(); c != nil && c.told.CompareAndSwap(false, true) {
		l.log.Warn(fmt.Sprintf("Cannot connect to the master at %s: %s; trying again until %s",
			addr, rootCause(err), c.until.Format(time.TimeOnly)))
	}
}

// rootCause is an error of the network in the few words that matter.
func rootCause(err error) string {
	var dns *net.DNSError
	var number syscall.Errno
	switch {
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &number):
		return number.Error()
	}
	return err.Error()
}
