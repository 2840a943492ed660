package metrics_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/metrics"
)

func TestText(t *testing.T) {
	got := string(metrics.Text(master.Stats{Started: time.UnixMilli(1700000000500), Requests: map[string]master.RequestStats{"_return": {Count: 3, Seconds: 0.25}, "_auth": {Count: 1, Seconds: 2}},
		SignIns: map[string]int64{"pend": 2}, Jobs: 4, Returns: 3, Keys: map[string]int{"accepted": 1, `a"\b`: 0}, Connected: 1, Subscribers: 2, Dropped: 5, Listeners: 6}))
	const want = `# TYPE brine_master_start_time_seconds gauge
# UNIT brine_master_start_time_seconds seconds
# HELP brine_master_start_time_seconds When the master was made, in seconds since 1970.
brine_master_start_time_seconds 1.7000000005e+09
# TYPE brine_master_requests counter
# HELP brine_master_requests Requests that were answered, by command.
brine_master_requests_total{cmd="_auth"} 1
brine_master_requests_total{cmd="_return"} 3
# TYPE brine_master_request_seconds counter
# UNIT brine_master_request_seconds seconds
# HELP brine_master_request_seconds How long answering took all together, by command.
brine_master_request_seconds_total{cmd="_auth"} 2
brine_master_request_seconds_total{cmd="_return"} 0.25
# TYPE brine_master_sign_ins counter
# HELP brine_master_sign_ins Sign-ins by what became of them.
brine_master_sign_ins_total{act="pend"} 2
# TYPE brine_master_jobs counter
# HELP brine_master_jobs Jobs that were published.
brine_master_jobs_total 4
# TYPE brine_master_returns counter
# HELP brine_master_returns Returns that were taken.
brine_master_returns_total 3
# TYPE brine_master_keys gauge
# HELP brine_master_keys Minions by the state of their key.
brine_master_keys{state="a\"\\b"} 0
brine_master_keys{state="accepted"} 1
# TYPE brine_master_minions_connected gauge
# HELP brine_master_minions_connected Minions that are connected.
brine_master_minions_connected 1
# TYPE brine_master_subscribers gauge
# HELP brine_master_subscribers Connections that listen for jobs.
brine_master_subscribers 2
# TYPE brine_master_subscribers_dropped counter
# HELP brine_master_subscribers_dropped Connections that were closed because they did not keep up.
brine_master_subscribers_dropped_total 5
# TYPE brine_master_event_listeners gauge
# HELP brine_master_event_listeners Listeners on the event bus.
brine_master_event_listeners 6
# EOF
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestHandler(t *testing.T) {
	m, err := master.New(master.Options{Network: master.Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(metrics.Handler(m))
	defer s.Close()
	if err := m.Health(t.Context()); !errors.Is(err, master.ErrNotServing) {
		t.Errorf("before it serves it is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx) }()
	<-m.Ready()
	if err := m.Health(t.Context()); err != nil {
		t.Error(err)
	}
	r, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != metrics.ContentType ||
		!strings.Contains(string(text), "\nbrine_master_keys{state=\"accepted\"} 0\n") || !strings.HasSuffix(string(text), "\n# EOF\n") {
		t.Errorf("%v %v\n%s", r, err, text)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
