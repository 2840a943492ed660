// Package httppost is the returner "http_post": every return as JSON in the body of a POST to an address of your own. Salt has
// no such returner; its splunk, slack_webhook and the like each serve one product.
//
// Options, all of them "returner.http_post.<name>":
//
//	url                 where to send to, http or https; required
//	headers             a map of further headers, an Authorization among them
//	username, password  basic authentication
//	verify_ssl          whether the server must prove its name; true
//	ca_bundle           a file with the authorities to trust instead of the host's
//	timeout             seconds that one attempt may take; 30
//	retries             further attempts when the server cannot be reached or says that it has trouble (429, 5xx); 3
//
// A server can get a return twice, when its answer was lost: "jid" and "id" tell. The minion's proxy_host, proxy_port,
// proxy_username, proxy_password and no_proxy hold. No message has anything of the address but the server's name, and nothing
// of headers and passwords.
package httppost

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/internal/certpool"
	"github.com/brine-salt/brine/internal/httpproxy"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
)

func init() { returners.Register(Module) }

const (
	allowed    = 4 * time.Minute // for all attempts together; the minion gives returners five
	maxRetries = 10
	maxAnswer  = 64 << 10 // of an answer, which nobody reads
)

// Module returns the returner "http_post".
func Module() *modules.Module { return module(time.Second) }

// module is like Module with a given upper limit of the pause before the second attempt.
func module(pause time.Duration) *modules.Module {
	return &modules.Module{Name: "http_post", Doc: "Send returns to an HTTP server.", Funcs: []modules.Def{
		returners.Prep(),
		returners.Def("returner", "Send a return: as JSON, in the body of a POST.", func(ctx context.Context, c *modules.Call) (any, error) {
			ret, err := returners.Return(c)
			if err != nil {
				return nil, err
			}
			return nil, send(ctx, c, ret, pause)
		}, "ret"),
	}}
}

// target is where a return goes, and how.
type target struct {
	url     *url.URL
	header  http.Header
	client  *http.Client
	retries int64
}

// options returns the settings. If the job itself sets the address or what to trust there, the configured secrets are
// not sent.
func options(c *modules.Call, ret map[string]any) map[string]any {
	o := returners.Options(c, "returner.http_post", ret, returners.Attrs("url", "headers", "username", "password", "verify_ssl", "ca_bundle", "timeout", "retries"),
		map[string]any{"verify_ssl": true, "timeout": int64(30), "retries": int64(3)})
	given, _ := ret["ret_kwargs"].(map[string]any)
	for _, name := range [...]string{"url", "verify_ssl", "ca_bundle"} {
		if _, ok := given[name]; !ok {
			continue
		}
		for _, secret := range [...]string{"headers", "username", "password"} {
			if _, ok := given[secret]; !ok {
				delete(o, secret)
			}
		}
	}
	return o
}

func newTarget(c *modules.Call, o map[string]any) (*target, error) {
	if !pytext.Truth(o["url"]) {
		return nil, modules.Errorf("cannot send the return: the option returner.http_post.url is missing")
	}
	u, err := url.Parse(pytext.Str(o["url"]))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, modules.Errorf("cannot send the return: returner.http_post.url is no http or https address")
	}
	t := &target{url: u, header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Salt/" + version.Salt + " http_post"}}}
	headers, ok := o["headers"].(map[string]any)
	if !ok && pytext.Truth(o["headers"]) {
		return nil, modules.Errorf("cannot send the return: returner.http_post.headers must be a dictionary")
	}
	for k, v := range headers {
		t.header.Set(k, pytext.Str(v))
	}
	if name := o["username"]; pytext.Truth(name) {
		password := ""
		if v := o["password"]; v != nil {
			password = pytext.Str(v)
		}
		t.url.User = url.UserPassword(pytext.Str(name), password)
	}
	if t.retries, err = modules.ToInt(o["retries"]); err != nil || t.retries < 0 || t.retries > maxRetries {
		return nil, modules.Errorf("cannot send the return: returner.http_post.retries must be a number from 0 to %d", maxRetries)
	}
	seconds, err := modules.ToInt(o["timeout"])
	if err != nil || seconds < 1 || seconds > int64(allowed.Seconds()) {
		return nil, modules.Errorf("cannot send the return: returner.http_post.timeout must be a number of seconds from 1 to %d", int(allowed.Seconds()))
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: !pytext.Truth(o["verify_ssl"])}
	if v := o["ca_bundle"]; pytext.Truth(v) {
		if trust.RootCAs, err = certpool.Read(c.Path(pytext.Str(v))); err != nil {
			return nil, modules.FileError(err)
		}
	}
	t.client = &http.Client{Timeout: time.Duration(seconds) * time.Second,
		Transport: &http.Transport{TLSClientConfig: trust, Proxy: httpproxy.Options(c.Opt), MaxResponseHeaderBytes: maxAnswer},
		// Following a redirect would drop the body, or send the headers to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return t, nil
}

func send(ctx context.Context, c *modules.Call, ret map[string]any, pause time.Duration) error {
	t, err := newTarget(c, options(c, ret))
	if err != nil {
		return err
	}
	defer t.client.CloseIdleConnections()
	ret = maps.Clone(ret)
	delete(ret, "ret_config") // these say how to send, and may have a password
	delete(ret, "ret_kwargs")
	text, err := returners.JSON(ret)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, allowed)
	defer cancel()
	wait := backoff.Backoff{Base: pause}
	for tries := t.retries; ; tries-- {
		again, err := t.post(ctx, text)
		if err == nil {
			return nil
		}
		err = fmt.Errorf("cannot send the return to %s://%s: %w", t.url.Scheme, t.url.Host, err)
		if !again || tries == 0 {
			return err
		}
		c.Logger().Debug("The return will be sent again", "jid", ret["jid"], "err", err)
		if !backoff.Sleep(ctx, wait.Next()) {
			return err
		}
	}
}

// post makes one attempt, and reports whether another one may help.
func (t *target) post(ctx context.Context, text string) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url.String(), bytes.NewReader([]byte(text)))
	if err != nil {
		return false, errors.New("it is no address") // the error has the address in it
	}
	req.Header = t.header.Clone()
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	resp, err := t.client.Do(req)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err // without the address
		}
		var cert *tls.CertificateVerificationError
		return ctx.Err() == nil && !errors.As(err, &cert), err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // so that the connection can serve again
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500, fmt.Errorf("the server answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
}
