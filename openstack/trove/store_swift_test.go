package trove

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestSwiftLogin: each kind of credentials makes the right request to Keystone, and the store of the configured
// region is used.
func TestSwiftLogin(t *testing.T) {
	var asked, used string
	server := httptest.NewServer(nil)
	defer server.Close()
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v3/auth/tokens" {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			asked = string(b)
			w.Header().Set("X-Subject-Token", "granted")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"token": {"expires_at": "2099-01-01T00:00:00.000000Z", "catalog": [{"type": "object-store", "name": "swift", "endpoints": [`+
				`{"interface": "public", "region": "one", "region_id": "one", "url": "`+server.URL+`/one/v1/AUTH_p"},`+
				`{"interface": "public", "region": "two", "region_id": "two", "url": "`+server.URL+`/two/v1/AUTH_p"}]}]}}`)
			return
		}
		used = r.Method + " " + r.URL.Path + " " + r.Header.Get("X-Auth-Token")
		w.WriteHeader(http.StatusNotFound)
	})
	for _, c := range []struct {
		conf map[string]any
		want string
	}{
		{map[string]any{}, `{"auth":{"identity":{"methods":["token"],"token":{"id":"of-the-call"}},"scope":{"project":{"id":"p1"}}}}`},
		{map[string]any{"username": "guest", "password": "secret", "project_name": "service"},
			`{"auth":{"identity":{"methods":["password"],"password":{"user":{"domain":{"name":"Default"},"name":"guest","password":"secret"}}},` +
				`"scope":{"project":{"domain":{"name":"Default"},"name":"service"}}}}`},
		{map[string]any{"application_credential_id": "a1", "application_credential_secret": "secret"},
			`{"auth":{"identity":{"application_credential":{"id":"a1","secret":"secret"},"methods":["application_credential"]}}}`},
	} {
		c.conf["type"], c.conf["auth_url"], c.conf["region"] = "swift", server.URL+"/v3", "two"
		h := newHost(t, map[string]any{"datastore_manager": "mariadb", "store": c.conf})
		settings, err := readSettings(h.env.Opts()["trove"])
		if err != nil {
			t.Fatal(err)
		}
		g := &guest{settings: settings, c: h.reg.NewCall(h.env, "trove.rpc_ping", "", nil),
			req: map[string]any{"auth_token": "of-the-call", "project_id": "p1"}}
		s, err := g.openStore(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal([]byte(asked), &got); err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(got); err != nil || string(b) != c.want {
			t.Errorf("asked with %s, not %s", b, c.want)
		}
		if _, err := s.get(t.Context(), "c", "n"); !errors.Is(err, fs.ErrNotExist) || used != "GET /two/v1/AUTH_p/c/n granted" {
			t.Errorf("used: %s, %v", used, err)
		}
	}
}
