package heat

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/certpool"
	"github.com/brine-salt/brine/internal/python/pyjson"
)

// maxBody limits a service's response in bytes.
const maxBody = 32 << 20

// defaultHTTPTimeout is the time limit of a request, as in os-collect-config.
const defaultHTTPTimeout = 10 * time.Second

// StatusError is a response of a service that is neither success nor "not modified".
type StatusError struct {
	Method, URL string
	Code        int
	Text        string // the beginning of the response
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %d %s: %s", e.Method, e.URL, e.Code, http.StatusText(e.Code), e.Text)
}

// web sends requests. The zero value is ready.
type web struct {
	timeout  time.Duration
	ca       string // a file of certificates; "" means the system's
	insecure bool
	client   *http.Client
	via      http.RoundTripper // replaces the network, for recording; may be nil
}

// hangUp closes idle connections.
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
		pool, err := certpool.Read(w.ca)
		if err != nil {
			return fmt.Errorf("cannot read the certificates: %w", err)
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

// do sends a request and returns the response and its body. It follows redirects with the same method, but only to
// the same host, because the headers contain tokens. A response of 400 and above is a *StatusError. Errors do not
// contain the query, which may have a signature.
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
			err = u.Err // without the URL
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

// plainURL returns a URL without user and query.
func plainURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "(not an address)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// parseMap parses JSON that must be a map. Errors contain what, the source.
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
