// Package httpproxy returns the proxy in Salt's options, for all HTTP clients. Salt's source: salt/utils/http.py.
package httpproxy

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// Through returns a function for http.Transport.Proxy from Salt's options proxy_host, proxy_port, proxy_username and
// proxy_password, or nil without a host or port. Requests to the hosts in the option no_proxy bypass the proxy.
func Through(host string, port int, user, password string, direct []string) func(*http.Request) (*url.URL, error) {
	if host == "" || port <= 0 || port > 65535 {
		return nil
	}
	proxy := &url.URL{Scheme: "http", Host: net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port))}
	if user != "" && password != "" {
		proxy.User = url.UserPassword(user, password)
	}
	return func(r *http.Request) (*url.URL, error) {
		if slices.Contains(direct, r.URL.Hostname()) {
			return nil, nil
		}
		return proxy, nil
	}
}

// Options is like [Through] with the values that opt returns, which may have any type.
func Options(opt func(name string) any) func(*http.Request) (*url.URL, error) {
	text := func(name string) string {
		if v := opt(name); v != nil {
			return pytext.Str(v)
		}
		return ""
	}
	port, err := strconv.Atoi(text("proxy_port"))
	if err != nil {
		return nil
	}
	var direct []string
	list, _ := opt("no_proxy").([]any)
	for _, v := range list {
		if s, ok := v.(string); ok {
			direct = append(direct, s)
		}
	}
	return Through(text("proxy_host"), port, text("proxy_username"), text("proxy_password"), direct)
}
