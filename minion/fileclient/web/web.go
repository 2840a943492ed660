// Package web fetches files from web servers for the file client. It is a separate package because it needs
// net/http.
//
// Salt's sources: salt/fileclient.py: get_url, salt/utils/http.py.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pyhttp"
	"github.com/brine-salt/brine/minion/fileclient"
)

// Options of [New]. The zero value is usable.
type Options struct {
	// Timeout limits the whole transfer. 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxBytes limits a file; 0 means DefaultMaxBytes.
	MaxBytes int64
	// Proxy returns the proxy of a request; nil uses the environment, as Go programs do.
	Proxy func(*http.Request) (*url.URL, error)
	// Client replaces the HTTP client, for tests and private certificate authorities.
	Client *http.Client
}

// Defaults of Options: Salt's http_request_timeout and http_max_body.
const (
	DefaultTimeout  = time.Hour
	DefaultMaxBytes = 100 << 30
	headerTimeout   = time.Minute
)

// New returns a function for fileclient.Options.Fetch. It fetches http and https addresses. A user and password in
// the address are sent as basic authentication. Certificates are verified unless the request says otherwise.
func New(o Options) func(ctx context.Context, r fileclient.WebRequest, w io.Writer) (etag string, err error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	return func(ctx context.Context, r fileclient.WebRequest, w io.Writer) (string, error) {
		return fetchFile(ctx, o, r, w)
	}
}

// fetchFile sends one GET request and copies the content.
func fetchFile(ctx context.Context, o Options, r fileclient.WebRequest, w io.Writer) (etag string, err error) {
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
