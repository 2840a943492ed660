package restapi

import (
	"io"
	"mime"
	"net/http"

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
	return q.Decode(b)
}
