package exchange

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPrice: what is decoded as YAML costs more than JSON, and most if it has aliases.
func TestPrice(t *testing.T) {
	const json, yaml, form = "application/json", "application/x-yaml; charset=utf-8", "application/x-www-form-urlencoded"
	for _, c := range []struct {
		kind, body string
		want       int64
	}{
		{json, `{"a": "&*"}`, 11}, {"text/plain", "&a *a", 5}, {"", "", 0},
		{yaml, "a: b & c", 4 * 8}, {"text/yaml", "a: *", 4 * 4}, {yaml, "[&a 1, *a]", aliasPrice},
		{yaml, strings.Repeat("&a *a", 10_000), 4 * 50_000},
		{form, "username=a&password=*&eauth=pam", 31}, {form, "arg=1&arg=2", 4 * 11}, {form, "kwarg=*a", 4 * 8}, {form, "%61rg=1", 4 * 7},
		{form, "arg=%26a", 4 * 8}, {form, "arg=[%26a 1,*a]", aliasPrice}, {form, "arg=%26a&arg=%2Aa", aliasPrice}, {form, "kw%61rg=%26a %2aa", aliasPrice},
	} {
		q := &Request{Request: httptest.NewRequest("POST", "/", nil)}
		q.Header.Set("Content-Type", c.kind)
		if got := q.Price([]byte(c.body)); got != c.want {
			t.Errorf("%s %.30q costs %d, want %d", c.kind, c.body, got, c.want)
		}
	}
}
