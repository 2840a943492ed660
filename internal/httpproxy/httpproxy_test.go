package httpproxy

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestOptions(t *testing.T) {
	type m = map[string]any
	full := m{"proxy_host": "::1", "proxy_port": "3128", "proxy_username": "me", "proxy_password": "pw", "no_proxy": []any{"direct.example", 1}}
	for _, c := range []struct {
		opts    m
		address string
		want    string
	}{
		{full, "http://files.example/x", "http://me:pw@[::1]:3128"},
		{full, "https://direct.example/x", ""},
		{m{"proxy_host": "proxy", "proxy_port": int64(8080), "proxy_username": "me"}, "http://files.example", "http://proxy:8080"},
		{m{"proxy_port": int64(3128)}, "http://files.example", ""},
		{m{"proxy_host": "", "proxy_port": int64(3128)}, "http://files.example", ""},
		{m{"proxy_host": "proxy"}, "http://files.example", ""},
		{m{"proxy_host": "proxy", "proxy_port": int64(70000)}, "http://files.example", ""},
		{m{}, "http://files.example", ""},
	} {
		got := ""
		if p := Options(func(name string) any { return c.opts[name] }); p != nil {
			u, err := p(httptest.NewRequest(http.MethodGet, c.address, nil))
			if err != nil {
				t.Fatal(err)
			}
			if u != nil {
				got = u.String()
			}
		}
		if got != c.want {
			t.Errorf("%v for %s: %q, want %q", c.opts, c.address, got, c.want)
		}
	}
}
