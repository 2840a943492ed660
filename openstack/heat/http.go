package heat

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pyjson"
)

// maxBody bounds what a service may answer, in bytes.
const maxBody = 32 << 20

// defaultHTTPTimeout is how long one request may take, as in os-collect-config.
const defaultHTTPTimeout = 10 * time.Second

// StatusError is an answer of a service that is neither success nor "not modified".
type StatusError struct {
	Method, URL string
	Code        int
	Text        string // the beginning of the answer
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %d %s: %s", e.Method, e.URL, e.Code, http.StatusText(e.Code), e.Text)
}

// web makes requests. The zero value is ready.
type web struct {
	timeout  time.Duration
	ca       string // a file of certificates; "" is the system's
	insecure bool
	client   *http.Client
	via      http.RoundTripper // in place of the network, for recording; nil is the network
}

// hangUp closes the connections that no request uses.
func (w *web) hangUp() {
	if w.client != nil {
		w.client.CloseIdleConnections()
	}
}

type request struct {
	method, url string
	header      map[string]string
	body        []byte
}

func (w *web) open() error {
	if w.client != nil {
		return nil
	}
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 2, IdleConnTimeout: 5 * time.Second}
	if w.ca != "" || w.insecure {
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: w.insecure}
	}
	if w.ca != "" {
		pem, err := os.ReadFile(w.ca)
		if err != nil {
			return fmt.Errorf("cannot read the certificates: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("cannot read the certificates: %s has none", w.ca)
		}
		t.TLSClientConfig.RootCAs = pool
	}
	if w.timeout <= 0 {
		w.timeout = defaultHTTPTimeout
	}
	var via http.RoundTripper = t
	if w.via != nil {
		via = w.via
	}
	w.client = &http.Client{Transport: via, Timeout: w.timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return nil
}

// do makes a request and returns the answer with its body. It follows redirects with the same method, to the same host only, because
// the headers hold tokens. An answer of 400 and above is a *StatusError. Errors show no query, which may hold a signature.
func (w *web) do(ctx context.Context, q request) (*http.Response, []byte, error) {
	if err := w.open(); err != nil {
		return nil, nil, err
	}
	for range 4 {
		res, body, err := w.once(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		to := res.Header.Get("Location")
		if res.StatusCode < 300 || res.StatusCode == http.StatusNotModified {
			return res, body, nil
		}
		if res.StatusCode < 400 && to != "" {
			next, err := res.Request.URL.Parse(to)
			if err != nil || next.Host != res.Request.URL.Host || next.Scheme != res.Request.URL.Scheme {
				return nil, nil, fmt.Errorf("%s %s: redirected to another host", q.method, plainURL(q.url))
			}
			q.url = next.String()
			continue
		}
		text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), 300)]), "?")), " ")
		return nil, nil, &StatusError{q.method, plainURL(q.url), res.StatusCode, text}
	}
	return nil, nil, fmt.Errorf("%s %s: too many redirects", q.method, plainURL(q.url))
}

func (w *web) once(ctx context.Context, q request) (*http.Response, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, q.method, q.url, bytes.NewReader(q.body))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot use the address %s", plainURL(q.url))
	}
	if q.body == nil {
		r.Body, r.ContentLength = nil, 0
	}
	for k, v := range q.header {
		r.Header.Set(k, v)
	}
	res, err := w.client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address
		}
		return nil, nil, fmt.Errorf("%s %s: %w", q.method, plainURL(q.url), err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("the answer exceeds %d bytes", maxBody)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", q.method, plainURL(q.url), err)
	}
	return res, body, nil
}

// plainURL is an address without user and query.
func plainURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "(not an address)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// parseMap reads JSON that must be a map; what says where it comes from.
func parseMap(b []byte, what string) (map[string]any, error) {
	v, err := pyjson.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", what, err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is damaged: it must be a map, not %s", what, kind(v))
	}
	return m, nil
}
