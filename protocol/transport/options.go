package transport

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
)

// KeepAlive configures TCP keepalive and, on Linux, the limit for unacknowledged bytes. The zero value detects a dead
// path within 45 seconds, even on a connection that only receives. A negative number leaves a setting to the system,
// like -1 in Salt's tcp_keepalive_idle, _cnt and _intvl.
type KeepAlive struct {
	Disabled       bool
	Idle, Interval time.Duration
	Count          int
	// UserTimeout is how long sent bytes may stay unacknowledged (TCP_USER_TIMEOUT, Linux). Keepalive does not
	// cover those.
	UserTimeout time.Duration
}

// SaltKeepAlive converts Salt's options, in seconds. Salt's defaults (true, 300, -1, -1) take hours to detect a dead
// path, so they mean the zero KeepAlive. Other values are the operator's choice and are used.
func SaltKeepAlive(enabled bool, idle, count, interval int) KeepAlive {
	if !enabled {
		return KeepAlive{Disabled: true, UserTimeout: -1}
	}
	if idle == 300 && count < 0 && interval < 0 {
		return KeepAlive{}
	}
	k := KeepAlive{Idle: -1, Interval: -1, Count: -1, UserTimeout: -1}
	if idle > 0 {
		k.Idle = time.Duration(idle) * time.Second
	}
	if interval > 0 {
		k.Interval = time.Duration(interval) * time.Second
	}
	if count > 0 {
		k.Count = count
	}
	return k
}

// withDefaults fills in the zero fields: first probe after 20 s, four probes 5 s apart, 40 s for unacknowledged
// bytes.
func (k KeepAlive) withDefaults() KeepAlive {
	if k.Idle == 0 {
		k.Idle = 20 * time.Second
	}
	if k.Interval == 0 {
		k.Interval = 5 * time.Second
	}
	if k.Count == 0 {
		k.Count = 4
	}
	if k.UserTimeout == 0 {
		k.UserTimeout = 40 * time.Second
	}
	return k
}

// forSubscribers replaces the zero value: a subscriber is probed after 8 seconds of silence, and then every 3
// seconds. On Linux the server knows after 18 seconds which subscribers are silent, and keeps their connections for
// 15 minutes in case the path works again. Elsewhere the connection ends after 14 seconds, or after 28 if bytes were
// sent just before.
func (k KeepAlive) forSubscribers() KeepAlive {
	if k == (KeepAlive{}) {
		return KeepAlive{Idle: 8 * time.Second, Interval: 3 * time.Second, Count: 2, UserTimeout: subscriberTimeout}
	}
	return k
}

// JoinHostPort returns "host:port" for a host as Salt's configuration writes it: a name, an IPv4 address, or an
// IPv6 address with or without brackets and zone.
func JoinHostPort(host string, port int) string {
	host = strings.TrimSpace(host)
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// CheckAddr returns an error if addr is not a "host:port" that can be dialled.
func CheckAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("transport: bad address %q: %w", addr, err)
	}
	if host == "" {
		return fmt.Errorf("transport: bad address %q: no host", addr)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("transport: bad address %q: port %q is not in 1..65535", addr, port)
	}
	return nil
}

// WithDefaults returns o with its zero fields filled in. For transports.
func (o ServerOptions) WithDefaults() (ServerOptions, error) {
	if o.Handler == nil {
		return o, errors.New("transport: server without a handler")
	}
	setDefault(&o.PubHWM, DefaultPubHWM)
	setDefault(&o.PubBytes, DefaultPubBytes)
	setDefault(&o.MaxMessage, DefaultMaxMessage)
	setDefault(&o.MaxUnauthenticated, DefaultMaxUnauthenticated)
	o.MaxUnauthenticated = max(o.MaxUnauthenticated, o.MaxMessage)
	setDefault(&o.MaxHandshakes, DefaultMaxHandshakes)
	setDefault(&o.HandshakeTimeout, DefaultHandshakeTimeout)
	setDefault(&o.ReadTimeout, DefaultReadTimeout)
	setDefault(&o.WriteTimeout, DefaultWriteTimeout)
	if o.Subscriber == nil {
		o.Subscriber = func(string, bool) {}
	}
	o.Log = loggerOr(o.Log)
	return o, nil
}

// WithDefaults returns o with its zero fields filled in. For transports.
func (o ClientOptions) WithDefaults() ClientOptions {
	setDefault(&o.MaxMessage, DefaultMaxMessage)
	setDefault(&o.DialTimeout, DefaultDialTimeout)
	setDefault(&o.HandshakeTimeout, DefaultHandshakeTimeout)
	setDefault(&o.ReadTimeout, DefaultReadTimeout)
	setDefault(&o.WriteTimeout, DefaultWriteTimeout)
	setDefault(&o.KeepIdle, DefaultKeepIdle)
	if o.OnWork == nil {
		o.OnWork = func() {}
	}
	setDefault(&o.ReconDefault, DefaultReconDefault)
	setDefault(&o.ReconMax, DefaultReconMax)
	o.ReconMax = max(o.ReconMax, o.ReconDefault)
	if o.Probe == 0 {
		o.Probe = DefaultProbe
	}
	o.Log = loggerOr(o.Log)
	return o
}

func setDefault[T int | int64 | time.Duration](p *T, def T) {
	if *p <= 0 {
		*p = def
	}
}

func loggerOr(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
