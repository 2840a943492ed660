package restapi

import (
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/native"
)

// readBody reads the body of a POST within the limits, and decodes it in the format that its Content-Type names. The
// files of an order are left in the connection: they are streamed once the order was checked.
func (s *Server) readBody(q *exchange.Request) error {
	if q.Method != http.MethodPost || q.ContentLength == 0 {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	if kind == "multipart/form-data" && q.URL.Path == native.OrdersPath {
		// The first part is read whole, the files in pieces.
		if t, err := s.tokenOwner(q.Request, tokenID(q.Request)); err == nil {
			if err := s.reserveOwn(q.Request, t, s.o.MaxBody); err != nil {
				return err
			}
		}
		return s.native.ReadParts(q)
	}
	free, charged, err := s.admitBody(q.Request)
	if err != nil {
		return err
	}
	// The request keeps its own body: net/http then drains or closes what a client sent beyond the limit.
	// guard: CVE-2025-13836,CVE-2025-47287 TestCVE_2025_47287_BodiesAreBounded instead: b, err := io.ReadAll(q.Body)
	b, err := io.ReadAll(http.MaxBytesReader(q.W, q.Body, s.o.MaxBody))
	free()
	if err != nil {
		return err
	}
	q.Charged = charged
	if err := s.chargeDecoding(q, q.Price(b)); err != nil {
		return err
	}
	return q.Decode(b)
}

// settleBody ends the account of a body whose request ended with err. A body that is refused costs more. A failure of
// the master, and a client that disconnects, cost what was charged before.
func (s *Server) settleBody(q *exchange.Request, err error) {
	if err == nil {
		if q.Refund > 0 {
			s.bodies.ChargeBytes(q.RemoteAddr, -q.Refund)
		}
		return
	}
	// guard: large-bodies TestRefusedBodiesCountMore
	if q.Charged > 0 && refusesBody(q.Request, err) {
		s.bodies.ChargeBytes(q.RemoteAddr, (refusedBody-1)*q.Charged)
	}
}

// refusesBody reports whether err refuses a request because of its body: for wrong credentials, too many of them, or
// because it is not a command. A user who sends too many requests has proved who it is.
func refusesBody(r *http.Request, err error) bool {
	status := statusOf(r, err)
	return status != nil && status.Code < http.StatusInternalServerError && status != errUserRate
}

// chargeDecoding counts what it costs to decode a body against the address of a caller without a token, before it is
// decoded, as far as the body was not counted before it was read. The address gets this back if the request succeeds. A
// body that is not decoded costs nothing. No price is higher than what an address has at once.
func (s *Server) chargeDecoding(q *exchange.Request, price int64) error {
	// guard: large-bodies TestPriceIsCapped
	price = min(price, burstOf(s.o.MaxBody))
	if price <= max(q.Charged, loginBody) {
		return nil
	}
	if _, err := s.tokenOwner(q.Request, tokenID(q.Request)); err == nil {
		return nil
	}
	more := price - q.Charged
	// guard: small-bodies TestRefusedSmallBodies instead: time.Now().IsZero()
	if !s.bodies.AllowBytes(q.RemoteAddr, more, time.Now()) {
		s.bodies.ChargeBytes(q.RemoteAddr, -q.Charged)
		// guard: large-bodies TestUndecodedBodiesCostNothing
		q.Charged = 0
		return exchange.NewError(http.StatusTooManyRequests,
			"Too many requests without a token were refused")
	}
	q.Charged, q.Refund = price, more
	return nil
}
