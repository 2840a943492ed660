package heat

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// replay responds to requests as the services did during the recording: by method and path, on any host. Polls get
// the metadata of the requested deployment.
type replay struct {
	t  *testing.T
	mu sync.Mutex
	// by method and path without query
	answers map[string]exchange
	signals []exchange // guarded by mu; requests to a signal's URL, with the recorded response
}

func (r *replay) RoundTrip(q *http.Request) (*http.Response, error) {
	var body []byte
	if q.Body != nil {
		body, _ = io.ReadAll(q.Body)
	}
	key := q.Method + " " + q.URL.EscapedPath()
	e, ok := r.answers[key]
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok {
		r.t.Errorf("a request that was not recorded: %s", key)
		e.Response.Status = http.StatusNotFound
	}
	if json.Valid(body) && strings.Contains(string(body), "deploy_status_code") {
		r.signals = append(r.signals, exchange{Request: message{Path: key, Body: string(body)}, Response: e.Response})
	}
	res := &http.Response{StatusCode: e.Response.Status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(e.Response.Body)), Request: q}
	for k, v := range e.Response.Headers {
		res.Header.Set(k, v)
	}
	return res, nil
}

const (
	zaqarSignal = "Heat 19 of Debian cannot read the queue (docs/openstack/guest.md): the stack has no end; testQueue has the signal as recorded"
	noSignal    = "a guest without a signal only polls, which the other recordings of its transport have"
)

// notRecorded are the pairs of transports without a recording, with the reasons. TestHeatH1Services tests them with
// the real services.
var notRecorded = map[string]string{
	"poll_server_cfn-zaqar_signal": zaqarSignal, "poll_server_heat-zaqar_signal": zaqarSignal, "poll_temp_url-zaqar_signal": zaqarSignal,
	"zaqar_message-zaqar_signal": zaqarSignal, "poll_temp_url-no_signal": noSignal, "zaqar_message-no_signal": noSignal,
}

// TestHeatH1Recorded: with the recorded responses, every recorded pair of transports collects, runs and signals as it
// did then.
func TestHeatH1Recorded(t *testing.T) {
	files, err := filepath.Glob("testdata/pairs/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is recorded: %v", err)
	}
	pairs := map[string][]exchange{}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var e exchange
		if err := json.Unmarshal(b, &e); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		name := filepath.Base(path)
		name = name[:strings.LastIndex(name, "-")]
		pairs[name] = append(pairs[name], e)
	}
	for _, poll := range []string{"poll_server_cfn", "poll_server_heat", "poll_temp_url", "zaqar_message"} {
		for _, signal := range []string{"cfn_signal", "heat_signal", "temp_url_signal", "zaqar_signal", "no_signal"} {
			name := poll + "-" + signal
			if why := notRecorded[name]; (why != "") == (pairs[name] != nil) {
				t.Errorf("%s has %d recorded requests, and is not recorded because %q", name, len(pairs[name]), why)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		t.Run(name, func(t *testing.T) { replayPair(t, pairs[name]) })
	}
}

func replayPair(t *testing.T, list []exchange) {
	g, r := newGuest(t), &replay{t: t, answers: map[string]exchange{}}
	g.o.Transport = r
	var want exchange // the signal that was sent
	var conf Conf
	for _, e := range list {
		path, _, _ := strings.Cut(e.Request.Path, "?")
		key := e.Request.Method + " " + path
		if have, ok := r.answers[key]; !ok || len(e.Response.Body) > len(have.Response.Body) {
			r.answers[key] = e // the response with the deployment
		}
		if strings.Contains(e.Request.Body, "deploy_status_code") {
			want = e
		}
		if c := configIn(e.Response.Body); c != nil {
			conf = c
		}
	}
	if conf == nil {
		t.Fatal("no recorded answer has metadata")
	}
	g.write("/etc/os-collect-config.conf", conf.Text())
	g.once()
	if want.Request.Body == "" { // NO_SIGNAL
		if len(r.signals) != 0 {
			t.Errorf("signalled: %v", r.signals)
		}
		return
	}
	if len(r.signals) != 1 {
		t.Fatalf("%d signals, want 1\n%s", len(r.signals), g.log)
	}
	path, _, _ := strings.Cut(want.Request.Path, "?")
	if got := r.signals[0].Request; !sameJSON([]byte(got.Body), []byte(want.Request.Body)) || got.Path != want.Request.Method+" "+path {
		t.Errorf("signal to %s:\n%s\nrecorded to %s:\n%s", got.Path, got.Body, path, want.Request.Body)
	}
}

// configIn returns the section os-collect-config in a response, at any depth.
func configIn(body string) Conf {
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		return nil
	}
	return configOfValue(v)
}

func configOfValue(v any) Conf {
	switch v := v.(type) {
	case map[string]any:
		if c := FromMetadata(v); c != nil {
			return c
		}
		for _, x := range v {
			if c := configOfValue(x); c != nil {
				return c
			}
		}
	case []any:
		for _, x := range v {
			if c := configOfValue(x); c != nil {
				return c
			}
		}
	}
	return nil
}
