package exchange

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/brine-salt/brine/protocol/payload"
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
		{form, "arg=%26a", 4 * 8}, {form, "arg=[%26a 1,*a]", aliasPrice}, {form, "kw%61rg=%26a %2aa", aliasPrice},
		{form, "arg=%26a&arg=%2Aa", 4 * 17}, // each value is a document
		{form, "username=u&password=a%26b*c&eauth=pam", 37}, {form, "target=1&margin=%26*", 20}, {form, "tgt=*&fun=test.ping&arg=x", 25 + 3*6},
		{form, "name=%zz&arg", 12 + 3*4},
	} {
		q := &Request{Request: httptest.NewRequest("POST", "/", nil)}
		q.Header.Set("Content-Type", c.kind)
		if got := q.Price([]byte(c.body)); got != c.want {
			t.Errorf("%s %.30q costs %d, want %d", c.kind, c.body, got, c.want)
		}
	}
}

// TestFormAliases: the values of one form share the aliases that one document may have.
func TestFormAliases(t *testing.T) {
	// bomb is 150 bytes that stand for 91,000 values.
	bomb := "[%26a [1,1,1,1,1,1,1,1,1,1],%26b [" + strings.Repeat("*a,", 10) + "],%26c [" + strings.Repeat("*b,", 10) + "],%26d [" +
		strings.Repeat("*c,", 10) + "]," + strings.Repeat("*d,", 7) + "]"
	for _, c := range []struct {
		name, body string
		refused    bool
	}{
		{"arg", "arg=" + bomb, false}, {"kwarg", "kwarg={a: " + bomb + "}", false},
		{"many", strings.Repeat("arg="+bomb+"&", 60), true}, {"both", "kwarg={a: " + bomb + "}&arg=" + bomb, true},
		{"small ones", strings.Repeat("arg=[%26a 1,*a]&", 400), false},
		{"text", "arg=" + bomb + "&arg=%26%26 *", false},
		{"one", "arg=[" + bomb + "," + strings.Repeat("*d,", 7) + "]", true},
	} {
		q := &Request{Request: httptest.NewRequest("POST", "/", nil)}
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		err := q.Decode([]byte(c.body))
		var e *Error
		if refused := errors.As(err, &e) && e.Code == http.StatusBadRequest; refused != c.refused || err != nil && !refused {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := count(q.Sent); n > 101_000 || err != nil && q.Sent != nil || err == nil && n < 100 {
			t.Errorf("%s: decoded to %d values", c.name, n)
		}
	}
}

// count returns how many values v has.
func count(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			n += count(x)
		}
	case map[string]any:
		for _, x := range v {
			n += count(x)
		}
	case payload.OrderedMap:
		for _, x := range v {
			n += count(x.Value)
		}
	}
	return n
}
