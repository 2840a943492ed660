//go:build !custom || fileclient.web

package standard

import (
	"context"
	"io"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/httpproxy"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/minion/fileclient/web"
)

// webFetcher returns a function that fetches files from http and https addresses.
func webFetcher(opts map[string]any) func(context.Context, fileclient.WebRequest,
	io.Writer) (string, error) {
	return web.New(webOptions(opts))
}

// webOptions returns the options for fetching from web servers.
func webOptions(opts map[string]any) web.Options {
	c := conf.Config{Opts: opts}
	return web.Options{
		Timeout:  max(0, c.Duration("http_request_timeout", time.Second)),
		MaxBytes: max(0, int64(c.Int("http_max_body"))),
		Proxy: httpproxy.Through(c.String("proxy_host"), c.Int("proxy_port"),
			c.String("proxy_username"), c.String("proxy_password"), c.Strings("no_proxy")),
	}
}
