// Package web fetches files from web servers for the file client. It is a package apart because it needs net/http.
//
// Salt's source: salt/fileclient.py: get_url, salt/utils/http.py.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/brine-salt/brine/internal/pyhttp"
	"github.com/brine-salt/brine/minion/fileclient"
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
// are sent as basic authentication. Certificates are verified unless the request says otherwise.
func New(o Options) func(ctx context.Context, r fileclient.WebRequest, w io.Writer) (etag string, err error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	return func(ctx context.Context, r fileclient.WebRequest, w io.Writer) (string, error) {
		return fetch(ctx, o, r, w)
	}
}

func fetch(ctx context.Context, o Options, r fileclient.WebRequest, w io.Writer) (etag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	u, err := url.Parse(r.URL)
	if err != nil {
		return "", err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("cannot fetch from %s addresses", u.Scheme)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	if r.ETag != "" {
		req.Header.Set("If-None-Match", r.ETag)
	}
	client := o.Client
	if client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		// guard: CVE-2020-28972,CVE-2020-35662 TestT16_CertificatesAreVerified instead: true
		if r.AnyCertificate {
			transport.TLSClientConfig.InsecureSkipVerify = true
		}
		transport.ResponseHeaderTimeout = headerTimeout
		if o.Proxy != nil {
			transport.Proxy = o.Proxy
		}
		defer transport.CloseIdleConnections()
		client = &http.Client{Transport: transport}
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", errors.New(pyhttp.Error(err))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && r.ETag != "":
		return "", fileclient.ErrNotModified
	case resp.StatusCode != http.StatusOK:
		return "", errors.New(pyhttp.Status(resp))
	}
	n, err := io.Copy(w, io.LimitReader(resp.Body, o.MaxBytes+1))
	if err == nil && n > o.MaxBytes {
		err = fmt.Errorf("the file has more than %d bytes", o.MaxBytes)
	}
	return resp.Header.Get("ETag"), err
}
