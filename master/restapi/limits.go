package restapi

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/listen"
)

// Bounds of what anybody may send and keep open, where the options name no other.
const (
	// smallBody is the size in bytes up to which a body is always read: log-ins fit well.
	smallBody = 64 << 10
	// defaultBody is Options.MaxBody, defaultStrangers Options.Strangers.
	defaultBody, defaultStrangers = 1 << 20, 64 << 20
	// bodyRate and bodyBurst bound the bodies beyond smallBody that come from one address without a token, in bytes a
	// second and at once: reading one as JSON takes some milliseconds of a processor. One that was refused, for a wrong
	// password or because it is no command, counts refusedBody times.
	bodyRate, bodyBurst = 1 << 20, 4 << 20
	refusedBody         = 8
	// defaultLoginRate and defaultLoginBurst are Options.LoginRate and LoginBurst.
	defaultLoginRate, defaultLoginBurst = 1, 20
	// headTime, requestTime and idleTime are what a client has for a head, for a whole request, and between requests.
	headTime, requestTime, idleTime = 10 * time.Second, 60 * time.Second, 2 * time.Minute
	// maxHead is the size in bytes of a head.
	maxHead = 64 << 10
)

// admitBody lets a request send its body, or says why not. What strangers send has its share: whoever opens many
// connections to send large bodies slowly takes no more memory than that, and keeps nobody from logging in. free gives
// the share back; of is what large bodies of a stranger's address were charged for it.
func (s *Server) admitBody(r *http.Request) (free func(), of int64, err error) {
	// guard: CVE-2025-13836,CVE-2025-47287 TestCVE_2025_47287_BodiesAreBounded
	if r.ContentLength > s.o.MaxBody {
		return nil, 0, &http.MaxBytesError{Limit: s.o.MaxBody}
	}
	if r.ContentLength >= 0 && r.ContentLength <= smallBody {
		return func() {}, 0, nil
	}
	if _, err := s.session(r); err == nil {
		return func() {}, 0, nil
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

// reserveBytes takes n bytes of Options.Strangers, or gives them back, and reports whether they were there.
func (s *Server) reserveBytes(n int64) bool {
	s.strangers.Lock()
	defer s.strangers.Unlock()
	if s.strangers.bytes+n > s.o.Strangers {
		return false
	}
	s.strangers.bytes += n
	return true
}

// share is what is taken of Options.Strangers.
type share struct {
	sync.Mutex // guards bytes
	bytes      int64
}

// HTTP is a server for the interface that bounds how long clients may take: 10 seconds for a head, 60 for a whole
// request, and 2 minutes between requests. A request that has come may take as long as it needs. With a listener from
// [Limit], taking an answer has its bounds, too. Callers on a unix socket are identified (see [ConnContext]).
func (s *Server) HTTP() *http.Server {
	return &http.Server{Handler: s, ConnContext: ConnContext, ReadHeaderTimeout: headTime,
		ReadTimeout: requestTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHead, ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug)}
}

// Limit bounds the connections of a listener for HTTP: how many there are at once, beyond which more wait in the
// kernel, and how many of one address (of one /64 for IPv6), beyond which more are closed. Unix sockets have no
// addresses. A client that takes less than 64 KiB of an answer in 30 seconds loses its connection.
func Limit(ln net.Listener, all, each int) net.Listener {
	return listen.Limit(ln, all, each)
}
