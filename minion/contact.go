package minion

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// contact is the state of a sign-in in progress.
type contact struct {
	until time.Time   // when it gives up
	told  atomic.Bool // whether the warning was logged
}

// unreachable logs a failed connection to a master: every attempt at debug level, the first of a sign-in as a
// warning. The operator sees the warning long before the sign-in fails.
func (l *link) unreachable(a master, addr string, err error) {
	l.log.Debug("Cannot connect to the master", "master", a.name, "addr", addr, "err", err)
	if c := l.contact.Load(); c != nil && c.told.CompareAndSwap(false, true) {
		l.log.Warn(fmt.Sprintf("Cannot connect to the master at %s: %s; trying again until %s",
			addr, rootCause(err), c.until.Format(time.TimeOnly)))
	}
}

// rootCause returns the innermost text of a network error, without addresses.
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
