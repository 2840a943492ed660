package vault

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// read calls vault.read_secret with the option vault.
func read(t *testing.T, config map[string]any) modules.Result {
	t.Helper()
	e := modulestest.Env(t)
	opts := e.Config()
	opts["vault"] = config
	e.Opts = func() map[string]any { return opts }
	return modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "vault.read_secret", Args: []any{"one/a"}})
}

// TestRefusedRequest: what is refused is tried once more with a new sign-in, since policies may have changed.
func TestRefusedRequest(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Vault-Token")+" "+r.Header.Get("X-Vault-Namespace"))
		if slices.Index(asked, asked[len(asked)-1]) == len(asked)-1 && strings.Contains(r.URL.Path, "/one/a") && !strings.Contains(r.URL.Path, "mounts") {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write([]byte(`{"auth": {"client_token": "t"}, "data": {"k": "v"}, "errors": ["permission denied"]}`))
	}))
	defer server.Close()
	res := read(t, map[string]any{"config_location": "local", "server": map[string]any{"url": server.URL, "namespace": "ns"},
		"auth": map[string]any{"method": "approle", "role_id": "r", "secret_id": "s"}})
	if diff := cmp.Diff(map[string]any{"k": "v"}, res.Return); diff != "" {
		t.Error(diff)
	}
	once := []string{"POST /v1/auth/approle/login  ns", "GET /v1/sys/internal/ui/mounts/one/a t ns", "GET /v1/one/a t ns"}
	if diff := cmp.Diff(slices.Concat(once, once), asked); diff != "" {
		t.Error(diff)
	}
}

// TestVerify: a server whose certificate nobody knows gets no token, unless the configuration names it or says not to look.
func TestVerify(t *testing.T) {
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte(`{"data": {"k": "v"}}`))
	}))
	defer server.Close()
	own := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for _, c := range []struct {
		verify any
		ok     bool
	}{{nil, false}, {true, false}, {own, true}, {false, true}, {"-----BEGIN CERTIFICATE", false}, {"/nosuch", false}} {
		asked = 0
		res := read(t, map[string]any{"config_location": "local", "url": server.URL, "verify": c.verify, "auth": map[string]any{"token": "t"}})
		if (res.Err == nil) != c.ok || (asked > 0) != c.ok {
			t.Errorf("%v: %v, %v, asked %d times", c.verify, res.Return, res.Err, asked)
		}
	}
}

// TestMasterIsNotAsked: a minion with a master, whose configuration does not say that it is its own, is told what to do.
func TestMasterIsNotAsked(t *testing.T) {
	res := read(t, map[string]any{"url": "http://127.0.0.1:1", "auth": map[string]any{"token": "t"}})
	if text, _ := res.Return.(string); !strings.Contains(text, "Set vault:config_location to local") {
		t.Errorf("%v", res.Return)
	}
}
