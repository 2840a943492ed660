//go:build unix

package standard_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/cliargs"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/minion"
)

// TestVerifySSL: every function that fetches a file and has the argument verify_ssl refuses a certificate of an
// unknown authority, unless the argument is false.
func TestVerifySSL(t *testing.T) {
	const text = "of the server\n"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			_, _ = w.Write([]byte(sum + "  f\n"))
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	s := newSite(t, map[string]any{"module_dirs": []any{}})
	m := s.minion(nil)
	url, hash := server.URL+"/f", server.URL+"/f.sha256"
	path := func(name string) string { return filepath.Join(filepath.Dir(s.root), name) }
	if err := os.WriteFile(path("have"), []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ret := func() map[string]any {
		return map[string]any{"changes": map[string]any{}, "comment": "", "name": "", "result": true}
	}
	cases := []struct {
		fun    string
		args   []any
		kwargs map[string]any
		good   string // part of the answer if the file or its hash was fetched
	}{
		{"state.single", []any{"file.managed"}, map[string]any{"name": path("managed"), "source": url, "skip_verify": true}, "updated"},
		{"cp.cache_file", []any{server.URL + "/cached"}, nil, "extrn_files"},
		{"file.get_source_sum", nil, map[string]any{"file_name": path("have"), "source": url, "source_hash": hash}, sum},
		{"file.get_managed", []any{path("have"), nil, server.URL + "/got", nil, nil, nil, nil, nil, nil, "base", nil, nil},
			map[string]any{"skip_verify": true}, "extrn_files"},
		{"file.manage_file", []any{path("made"), "", ret(), server.URL + "/made", map[string]any{}, nil, nil, nil, nil, "base", ""},
			map[string]any{"skip_verify": true}, "updated"},
		{"file.check_managed_changes", []any{path("have"), server.URL + "/changes", hash, nil, nil, nil, nil, nil, nil, nil, nil, "base"}, nil, "diff"},
		{"file.check_file_meta", []any{path("have"), "", server.URL + "/meta", map[string]any{"hsum": sum, "hash_type": "sha256"}, nil, nil, nil, nil, "base"},
			nil, "diff"},
	}
	for _, c := range cases {
		for _, verify := range []string{"", "verify_ssl=True", "verify_ssl=False"} { // in this order, since fetched files stay in the cache
			_, kwargs := cliargs.Parse(strings.Fields(verify), cliargs.NoParse(""))
			if kwargs == nil {
				kwargs = map[string]any{}
			}
			maps.Copy(kwargs, c.kwargs)
			res := s.call(m, minion.CallOptions{Fun: c.fun, Args: c.args, Kwargs: kwargs})
			if got := strings.Contains(pytext.Repr(res.Return), c.good); got != (verify == "verify_ssl=False") {
				t.Errorf("%s %s: %v, %v", c.fun, verify, res.Return, res.Err)
			}
		}
	}
}
