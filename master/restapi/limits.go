package restapi

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/handshakes"
	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/listen"
)

// Limits for unauthenticated clients, and defaults of Options.
const (
	// smallBody is the size in bytes up to which a body is always read, and loginBody the price up to which it is
	// always decoded, as exchange.Request.Price counts: 1 KiB of JSON, 256 bytes of YAML without aliases. Log-ins are
	// smaller.
	smallBody, loginBody = 64 << 10, 1 << 10
	// defaultBody and defaultStrangers are the defaults of Options.MaxBody and Options.Strangers.
	defaultBody, defaultStrangers = 1 << 20, 64 << 20
	// bodyRate and bodyBurst limit the bodies above smallBody from one address without a token, in bytes per
	// second and at once, because parsing one as JSON takes some milliseconds. A body that is refused, for a
	// wrong password or because it is not a command, counts refusedBody times. A body between loginBody and
	// smallBody counts by its price, unless its request succeeds: as YAML it takes up to 40 milliseconds. bodyBurst
	// is Options.MaxBody if that is more, and no body costs more than it.
	bodyRate, bodyBurst = 1 << 20, 4 << 20
	refusedBody         = 8
	// ownBytes is the memory in bytes for the bodies above smallBody of identified callers, and for uploads. A body
	// counts until its request has ended, and as ownBody at most.
	ownBytes, ownBody = 128 << 20, 16 << 20
	// defaultLoginRate and defaultLoginBurst are the defaults of Options.LoginRate and LoginBurst.
	defaultLoginRate, defaultLoginBurst = 1, 20
	// defaultStreams is the default of Options.Streams.
	defaultStreams = 256
	// headTime, requestTime and idleTime are the time limits for a request's head, for a whole request, and
	// between requests.
	headTime, requestTime, idleTime = 10 * time.Second, 60 * time.Second, 2 * time.Minute
	// maxHead is the maximum size in bytes of a request's head.
	maxHead = 64 << 10
)

// burstOf returns how many bytes of bodies an address without a token may send at once: bodyBurst, or one body of the
// maximum size.
func burstOf(maxBody int64) int64 { return max(bodyBurst, maxBody) }

// admitBody decides whether a request may send its body. Bodies of up to 64 KiB and those of identified callers are
// always read; callers share ownBytes for theirs. Larger ones from unauthenticated callers share Options.Strangers
// bytes of memory and have a rate per address, so that many slow uploads neither exhaust the memory nor keep others
// from logging in. free returns the reserved memory; charged is what was counted against the address, and 0 for bodies
// that are always read.
func (s *Server) admitBody(r *http.Request) (free func(), of int64, err error) {
	// guard: CVE-2025-13836,CVE-2025-47287 TestCVE_2025_47287_BodiesAreBounded
	if r.ContentLength > s.o.MaxBody {
		return nil, 0, &http.MaxBytesError{Limit: s.o.MaxBody}
	}
	if r.ContentLength >= 0 && r.ContentLength <= smallBody {
		return func() {}, 0, nil
	}
	if t, err := s.session(r); err == nil {
		return func() {}, 0, s.reserveOwn(r, t, cmp.Or(max(0, r.ContentLength), s.o.MaxBody))
	}
	n := r.ContentLength
	if n < 0 {
		n = s.o.MaxBody
	}
	// guard: large-bodies TestStrangersShareTheirMemory
	if !s.reserveBytes(n) {
		return nil, 0, exchange.NewError(http.StatusServiceUnavailable,
			"Too many large requests are being sent")
	}
	// guard: large-bodies TestLargeBodiesOfOneAddress instead: true
	if s.bodies.AllowBytes(r.RemoteAddr, n, time.Now()) {
		return func() { s.reserveBytes(-n) }, n, nil
	}
	s.reserveBytes(-n)
	return nil, 0, exchange.NewError(http.StatusTooManyRequests,
		"Too many large requests without a token")
}

// reserveOwn takes n bytes of ownBytes for a request of an identified caller until the request has ended. Callers share
// them as they share the streams.
func (s *Server) reserveOwn(r *http.Request, t eauth.Token, n int64) error {
	n = min(n, ownBody)
	who, err := s.sharerOf(t)
	if err != nil {
		return err
	}
	// guard: bodies-of-one-caller TestOwnBodiesAreShared instead: !s.own.take(who, 0)
	if !s.own.take(who, n) {
		return exchange.NewError(http.StatusServiceUnavailable,
			"Too many large requests are being served")
	}
	context.AfterFunc(r.Context(), func() { s.own.leave(who, n) })
	return nil
}

// reserveBytes takes n bytes of Options.Strangers and reports whether they were available. A negative n returns them.
func (s *Server) reserveBytes(n int64) bool {
	s.strangers.Lock()
	defer s.strangers.Unlock()
	if s.strangers.bytes+n > s.o.Strangers {
		return false
	}
	s.strangers.bytes += n
	return true
}

// share is the part of Options.Strangers that is in use.
type share struct {
	sync.Mutex // guards bytes
	bytes      int64
}

// HTTP returns an http.Server that bounds how long a client may take: 10 seconds to send a request's head, 60 for the
// whole request, and 2 minutes between requests. How long an answer takes to compute is not bounded. A listener from
// [Limit] bounds how long it may take to be received. Callers on a unix socket are identified (see [ConnContext]).
func (s *Server) HTTP() *http.Server {
	return &http.Server{Handler: s, ConnContext: ConnContext, ReadHeaderTimeout: headTime,
		ReadTimeout: requestTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHead, ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug)}
}

// Limit bounds the connections of a listener for HTTP. Beyond all of them, more wait in the kernel; beyond each from
// one address (a /64 of IPv6), more are closed. On a unix socket a user gets no further one while it has more than are
// free: one alone gets half of all. A client that receives less than 64 KiB of an answer within 30 seconds loses its
// connection.
func Limit(ln net.Listener, all, each int) net.Listener {
	return listen.Limit(ln, all, each)
}

// SpaceHandshakes bounds the TLS handshakes of one address at a listener below TLS: 80 per second and 2,000 at once.
// Further connections wait up to 5 seconds, and beyond that they are closed. A client that sends nothing, or leaves
// before it has an answer, does not count. Neither does one that logs in or has a token, if the server has
// [ConnContext].
func SpaceHandshakes(ln net.Listener) net.Listener {
	return handshakes.Space(ln, handshakes.Rate, handshakes.Burst)
}
