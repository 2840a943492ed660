package pillar_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/httpmod"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/pillar"
)

// TestPasswordsOfAddressesAreNotLogged checks that no password or token of an address appears in the log, the error
// or the pillar when an external pillar cannot be requested or parsed.
func TestPasswordsOfAddressesAreNotLogged(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			_, _ = w.Write([]byte("{: ["))
			return
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer s.Close()
	for _, kind := range []string{"http_json", "http_yaml"} {
		for _, base := range []string{strings.Replace(s.URL, "http://", "http://user:hunter2@", 1), "http://user:hunter2@127.0.0.1:1", "http://user:hunter2@bad host"} {
			for _, path := range []string{"/refused", "/bad"} {
				var log bytes.Buffer
				l := slog.New(slog.NewTextHandler(&log, nil))
				c := pillar.New(pillar.Options{Registry: modules.NewRegistry(httpmod.Module), Env: modules.Env{Log: l}, Log: l,
					Opts: map[string]any{"ext_pillar": []any{map[string]any{kind: base + path + "?token=hunter3&id=%s"}}}})
				out, err := c.Compile(context.Background(), pillar.Request{ID: "m", Saltenv: "base"})
				text := log.String()
				if err != nil {
					text += err.Error()
				}
				if out != nil {
					text += fmt.Sprint(pyobj.PlainMap(out))
				}
				if strings.Contains(text, "hunter") || log.Len() == 0 {
					t.Errorf("%s %s%s: %s", kind, base, path, text)
				}
			}
		}
	}
}
