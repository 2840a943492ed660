// Package metrics serves a master's counters to monitoring systems, in the OpenMetrics text format that
// Prometheus reads.
package metrics

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/master"
)

// ContentType is the content type of OpenMetrics.
const ContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// Handler serves a master's counters. It needs no authentication and shows no names: mount it where only
// monitoring can reach it, or not at all. [master.Master.Health] reports whether the master is well.
func Handler(m *master.Master) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s, err := m.Stats()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", ContentType)
		w.Write(Text(s))
	})
}

// Text returns a master's counters as OpenMetrics text.
func Text(s master.Stats) []byte {
	var b bytes.Buffer
	head := func(name, kind, help string) {
		fmt.Fprintf(&b, "# TYPE brine_master_%s %s\n", name, kind)
		if strings.HasSuffix(name, "_seconds") {
			fmt.Fprintf(&b, "# UNIT brine_master_%s seconds\n", name)
		}
		fmt.Fprintf(&b, "# HELP brine_master_%s %s\n", name, help)
	}
	line := func(name, label, value string, v float64) {
		b.WriteString("brine_master_" + name)
		if label != "" {
			b.WriteString("{" + label + "=\"" + escape(value) + "\"}")
		}
		b.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
	}
	gauge := func(name, help string, v int) {
		head(name, "gauge", help)
		line(name, "", "", float64(v))
	}
	counter := func(name, help string, v int64) {
		head(name, "counter", help)
		line(name+"_total", "", "", float64(v))
	}
	head("start_time_seconds", "gauge", "When the master was made, in seconds since 1970.")
	line("start_time_seconds", "", "", float64(s.Started.UnixMilli())/1000)
	head("requests", "counter", "Requests that were answered, by command.")
	for cmd, r := range sorted(s.Requests) {
		line("requests_total", "cmd", cmd, float64(r.Count))
	}
	head("request_seconds", "counter", "How long answering took all together, by command.")
	for cmd, r := range sorted(s.Requests) {
		line("request_seconds_total", "cmd", cmd, r.Seconds)
	}
	head("sign_ins", "counter", "Sign-ins by what became of them.")
	for act, n := range sorted(s.SignIns) {
		line("sign_ins_total", "act", act, float64(n))
	}
	counter("jobs", "Jobs that were published.", s.Jobs)
	counter("returns", "Returns that were taken.", s.Returns)
	head("keys", "gauge", "Minions by the state of their key.")
	for state, n := range sorted(s.Keys) {
		line("keys", "state", state, float64(n))
	}
	gauge("minions_connected", "Minions that are connected.", s.Connected)
	gauge("subscribers", "Connections that listen for jobs.", s.Subscribers)
	counter("subscribers_dropped", "Connections that were closed because they did not keep up.", s.Dropped)
	gauge("event_listeners", "Listeners on the event bus.", s.Listeners)
	b.WriteString("# EOF\n")
	return b.Bytes()
}

// sorted iterates over a map in the order of its keys.
func sorted[V any](m map[string]V) func(yield func(string, V) bool) {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}
