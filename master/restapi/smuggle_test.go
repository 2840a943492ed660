package restapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestTwoLengthsAreOneRequest: what follows a request with both Content-Length and Transfer-Encoding is not read as
// a second request. A proxy that uses the other header would have let it through.
func TestTwoLengthsAreOneRequest(t *testing.T) {
	c, err := net.Dial("tcp", newSite(t, nil).server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second)) // a connection that stays
	hidden := "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	fmt.Fprintf(c, "POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", 5+len(hidden), hidden)
	r := bufio.NewReader(c)
	first, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, first.Body); err != nil || !first.Close {
		t.Errorf("the connection stays: %v", err)
	}
	rest, _ := io.ReadAll(r)
	if strings.Contains(string(rest), "HTTP/") {
		t.Errorf("a second answer: %.200q", rest)
	}
}
