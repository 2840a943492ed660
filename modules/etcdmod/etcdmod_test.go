package etcdmod

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// A server may say that a directory is in itself for ever.
func TestDeepTree(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_, _ = w.Write([]byte(`{"node": {"key": "/a", "dir": true, "nodes": [{"key": "/` + strconv.Itoa(asked) + `", "dir": true}]}}`))
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(u.Port(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	res := modules.NewRegistry(Module).Run(context.Background(), &modules.Env{}, modules.Request{Fun: "etcd.tree", Kwargs: map[string]any{"host": u.Hostname(), "port": port}})
	if !failedWith(res.Err, "RecursionError") || asked != maxDepth+1 {
		t.Errorf("after %d questions: %v", asked, res.Err)
	}
}

func TestAnswer(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                 `Unable to decode server response: TypeError("argument of type 'NoneType' is not iterable")`,
		`[1]`:                `Unable to decode server response: TypeError("argument of type 'NoneType' is not iterable")`,
		`{"node": 5}`:        `Unable to decode server response: TypeError("argument of type 'NoneType' is not iterable")`,
		``:                   `Server response was not valid JSON: JSONDecodeError('Expecting value: line 1 column 1 (char 0)')`,
		`{"node": {"a": 1}}`: "",
	} {
		_, err := answer(http.StatusOK, []byte(text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || err.Error() != otherError+": "+want):
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
	_, err := answer(http.StatusInternalServerError, []byte("oops"))
	if err == nil || err.Error() != otherError+": Bad response : oops" {
		t.Errorf("an error that is no JSON: %v", err)
	}
}
