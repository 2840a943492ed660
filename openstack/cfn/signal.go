package cfn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/modules/pyobj"
)

const (
	novaURL  = "http://169.254.169.254/openstack/2012-08-10/meta_data.json"
	novaFile = dataDir + "/nova_meta.json"
	// novaTimeout limits the request for the server's id. Outside of a cloud the address does not respond.
	novaTimeout = 5 * time.Second
	// signalTries and signalPause limit the retries of a signal: the pauses are 1, 2, 4 and 8 s, and each request may
	// take requestTimeout.
	signalTries = 5
	signalPause = time.Second
)

// curl's exit codes, which cfn-signal also uses.
const (
	exitUsageURL  = 3
	exitNoHost    = 6
	exitNoConnect = 7
	exitHTTP      = 22
	exitTimeout   = 28
	exitTLS       = 60
)

// Signal is the request that cfn-signal sends.
type Signal struct {
	// URL is the wait condition's URL, or file:///path of a file that contains it.
	URL string
	// Success is the status. Heat shows Reason, Data and ID. ID defaults to the server's id, or its name.
	Success          bool
	Reason, Data, ID string
	// Insecure accepts any certificate.
	Insecure bool
}

// signalError means that a signal was not delivered. code is the exit code for it.
type signalError struct {
	code int
	err  error
}

func (e *signalError) Error() string { return e.err.Error() }
func (e *signalError) Unwrap() error { return e.err }

// body returns the signal exactly as heat-cfntools writes it.
func (s Signal) body() ([]byte, error) {
	status := "FAILURE"
	if s.Success {
		status = "SUCCESS"
	}
	text, err := pyjson.Format(pyobj.NewDict("Status", status, "Reason", s.Reason, "UniqueId", s.ID, "Data", s.Data),
		pyjson.Options{Indent: -1, ASCII: true})
	return []byte(text), err
}

// send sends a signal until the response is 2xx, or one for which a retry is useless.
func (h *host) send(ctx context.Context, s Signal) error {
	target, err := h.signalURL(s.URL)
	if err != nil {
		return &signalError{exitUsageURL, err}
	}
	if s.ID == "" {
		s.ID = h.uniqueID(ctx)
	}
	body, err := s.body()
	if err != nil {
		return err
	}
	pause := signalPause
	for try := 1; ; try++ {
		again, err := h.put(ctx, target, body)
		if err == nil || !again || try == signalTries || ctx.Err() != nil {
			return err
		}
		h.log.Warn("The signal did not arrive and is sent again", "err", err, "try", try)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// signalURL returns the URL of a signal. Its error does not contain the URL, which has a signature.
func (h *host) signalURL(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if name, ok := strings.CutPrefix(text, "file://"); ok {
		b, err := readBounded(h.path(name))
		if err != nil {
			return nil, fmt.Errorf("cannot read the file with the signal's address: %w", err)
		}
		text = strings.TrimSpace(string(b))
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the signal's address must begin with http:// or https://")
	}
	return u, nil
}

// put sends a signal once. again reports whether a retry may succeed.
func (h *host) put(ctx context.Context, u *url.URL, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), strings.NewReader(string(body)))
	if err != nil {
		return false, &signalError{exitUsageURL, err}
	}
	// Heat's signature does not permit a content type, see cfn-signal.
	res, err := h.client.Do(req)
	if err != nil {
		return true, &signalError{curlCode(err), fmt.Errorf("cannot send the signal to %s: %w", u.Host, withoutURL(err))}
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 4096))
	if res.StatusCode/100 == 2 {
		return false, nil
	}
	if err != nil {
		answer = nil
	}
	again = res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusRequestTimeout
	return again, &signalError{exitHTTP, fmt.Errorf("%s answers the signal with %s: %s", u.Host, res.Status, shorten(string(answer), 300))}
}

func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// curlCode returns curl's exit code for an error.
func curlCode(err error) int {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return exitNoHost
	case os.IsTimeout(withoutURL(err)) || errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	case errors.As(err, &op) && op.Op == "dial":
		return exitNoConnect
	case strings.Contains(err.Error(), "x509:"):
		return exitTLS
	}
	return exitNoConnect
}

// uniqueID returns the server's id in Nova, which is cached as in heat-cfntools, or the host's name.
func (h *host) uniqueID(ctx context.Context) string {
	if id := h.novaID(ctx); id != "" {
		return id
	}
	h.log.Warn("Cannot get the server's id from the metadata service; the signal has the host's name")
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	if full, err := net.DefaultResolver.LookupCNAME(ctx, name); err == nil && strings.HasPrefix(full, name+".") {
		return strings.TrimSuffix(full, ".")
	}
	return name
}

func (h *host) novaID(ctx context.Context) string {
	b, err := readBounded(h.path(novaFile))
	if err != nil {
		if b, err = h.askNova(ctx); err != nil {
			h.log.Debug("Cannot reach the metadata service", "err", err)
			return ""
		}
		if err := os.MkdirAll(filepath.Dir(h.path(novaFile)), 0o755); err == nil {
			err = atomicfile.WriteFile(h.path(novaFile), b, 0o644)
			if err != nil {
				h.log.Warn("Cannot keep Nova's metadata", "err", err)
			}
		}
	}
	var meta struct {
		UUID string `json:"uuid"`
	}
	if err := json.Unmarshal(b, &meta); err != nil {
		h.log.Warn("Nova's metadata is not JSON", "file", novaFile, "err", err)
	}
	return meta.UUID
}

func (h *host) askNova(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, novaTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, novaURL, nil)
	if err != nil {
		return nil, err
	}
	res, err := h.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the metadata service answers %s", res.Status)
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxMetadata))
	if err == nil && !json.Valid(b) {
		err = errors.New("the metadata service's answer is not JSON")
	}
	return b, err
}
