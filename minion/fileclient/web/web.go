// Package web fetches files from web servers for the file client. It is a package apart because it needs net/http.
//
// Certificates are always verified. Salt's source: salt/fileclient.py: get_url, salt/utils/http.py.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Options of [New]. The zero value works.
type Options struct {
	// Timeout is for the whole transfer's silence: connecting, and waiting for the answer to begin. 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxBytes bounds a file, 0 means DefaultMaxBytes.
	MaxBytes int64
	// Proxy is through which proxy requests go; nil asks the environment, as Go programs do.
	Proxy func(*http.Request) (*url.URL, error)
	// Client replaces the HTTP client, for tests and special roots of trust.
	Client *http.Client
}

// Defaults of Options: Salt's http_request_timeout and http_max_body.
const (
	DefaultTimeout  = time.Hour
	DefaultMaxBytes = 100 << 30
	headerTimeout   = time.Minute
)

// New gives a function for fileclient.Options.Fetch. It takes http and https addresses; a user and password in the address
// are sent as basic authentication.
func New(o Options) func(ctx context.Context, address string, w io.Writer) error {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	return func(ctx context.Context, address string, w io.Writer) error { return fetch(ctx, o, address, w) }
}

func fetch(ctx context.Context, o Options, address string, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("cannot fetch from %s addresses", u.Scheme)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	client := o.Client
	if client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		// guard: CVE-2020-28972,CVE-2020-35662 TestT16_CertificatesAreVerified instead: transport.TLSClientConfig.InsecureSkipVerify = true
		transport.ResponseHeaderTimeout = headerTimeout
		if o.Proxy != nil {
			transport.Proxy = o.Proxy
		}
		defer transport.CloseIdleConnections()
		client = &http.Client{Transport: transport}
	}
	resp, err := client.Do(req)
	if err != nil {
		var short *url.Error
		if errors.As(err, &short) {
			return short.Err // without the address, which may hold a password
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d: %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	n, err := io.Copy(w, io.LimitReader(resp.Body, o.MaxBytes+1))
	if err == nil && n > o.MaxBytes {
		err = fmt.Errorf("the file has more than %d bytes", o.MaxBytes)
	}
	return err
}
