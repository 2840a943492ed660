package restapi_test

import (
	"fmt"
	"testing"

	"github.com/brine-salt/brine/master/restapi"
)

// TestForeignOrigin: a page of another origin cannot use the session cookie of the user who views it, neither to
// read nor to run commands. A page that sends the token itself can, and so can an origin that the options allow.
func TestForeignOrigin(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.Origins = []string{"https://ui.example"} })
	token := s.token
	s.token = ""
	host := s.server.Listener.Addr().String()
	for _, c := range []struct {
		method, path, origin, site, header string
		want                               int
	}{
		{"GET", "/minions", "http://evil.example:8080", "", "", 403},
		{"GET", "/events", "http://evil.example", "", "", 403},
		{"GET", "/minions", "null", "", "", 403},
		{"POST", "/", "http://evil.example", "", "", 403},
		{"POST", "/logout", "http://evil.example", "", "", 403},
		{"POST", "/logout", "", "cross-site", "", 403},
		{"POST", "/", "", "same-site", "", 403},
		{"GET", "/minions", "http://evil.example", "", token, 200},
		{"GET", "/minions", "https://ui.example", "", "", 200},
		{"GET", "/minions", "http://" + host, "same-origin", "", 200},
		{"GET", "/minions", "", "cross-site", "", 200},
		{"POST", "/", "http://" + host, "same-origin", "", 200},
	} {
		t.Run(fmt.Sprint(c.method, c.path, c.origin, c.site), func(t *testing.T) {
			headers := []string{"Cookie", "session_id=" + token, "Accept", "application/json"}
			for name, v := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site, "X-Auth-Token": c.header} {
				if v != "" {
					headers = append(headers, name, v)
				}
			}
			body := ""
			if c.method == "POST" {
				body = `[{"client": "runner", "fun": "test.arg"}]`
			}
			code, text, h := s.do(c.method, c.path, "application/json", body, headers...)
			if code != c.want {
				t.Fatalf("%d %s", code, text)
			}
			if allow := h.Get("Access-Control-Allow-Origin"); code == 403 && allow != "" {
				t.Errorf("the page may read the answer: %s", allow)
			}
		})
	}
}
