// Package pyhttp returns the error texts of stock Salt's HTTP client (tornado over Python's sockets) for failed
// requests.
package pyhttp

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/brine-salt/brine/modules"
)

// Timeout is the error text for a request that timed out, status 599.
const Timeout = "HTTP 599: Timeout during request"

// IsTimeout reports whether a request timed out.
func IsTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Error returns the error text for a request without a response. It leaves out the address, which may contain a
// password.
func Error(err error) string {
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	var no syscall.Errno
	var dns *net.DNSError
	switch {
	case IsTimeout(err):
		return Timeout
	case errors.As(err, &dns):
		return "[Errno -2] Name or service not known"
	case errors.As(err, &no):
		text, _ := modules.OSErrorText(no)
		return text
	}
	return err.Error()
}

// Status returns the error text for an unsuccessful response, with the reason from the server.
func Status(resp *http.Response) string {
	_, reason, _ := strings.Cut(resp.Status, " ")
	if reason == "" {
		reason = http.StatusText(resp.StatusCode)
	}
	if reason == "" {
		reason = "Unknown"
	}
	return fmt.Sprintf("HTTP %d: %s", resp.StatusCode, reason)
}
