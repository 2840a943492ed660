//go:build interop

package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func aReturn(jid string) map[string]any {
	return map[string]any{"id": "web1", "jid": jid, "fun": "test.echo", "fun_args": []any{"it's"}, "success": true,
		"return": map[string]any{"a": 1, "b": []any{1.5, nil, "x"}}, "retcode": 0}
}

// message is what a topic has.
type message struct {
	Partition  int32
	Key, Value string
}

// TestKafka sends returns with stock's client and with ours to brokers that speak the protocol, and compares what arrives. There is no
// Kafka among Debian's packages; the brokers are those of the library's own tests.
func TestKafka(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(5, "ours", "stock"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	jids := []string{"20261121100000000001", "20261121100000000002", "20261121100000000003"}
	opts := func(topic string) map[string]any {
		servers := []any{}
		for _, a := range cluster.ListenAddrs() {
			servers = append(servers, a)
		}
		return map[string]any{"returner.kafka.bootstrap": servers, "returner.kafka.topic": topic}
	}
	e := modulestest.Env(t)
	e.Opts = func() map[string]any { return opts("ours") }
	var log bytes.Buffer
	e.Log = slog.New(slog.NewTextHandler(&log, nil))
	var calls [][2]any
	for _, jid := range jids {
		var ret map[string]any // as it comes from a job: plain values
		b, err := json.Marshal(aReturn(jid))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &ret); err != nil {
			t.Fatal(err)
		}
		ret["retcode"], ret["return"].(map[string]any)["a"] = int64(0), int64(1)
		calls = append(calls, [2]any{"returner", []any{ret}})
		res := modules.NewRegistry(Module()).Run(t.Context(), e, modules.Request{Fun: "kafka.returner", Args: []any{ret}})
		if res.Err != nil || log.Len() > 0 {
			t.Fatal(res.Err, log.String())
		}
	}
	python := testsalt.Python(t)
	in, err := json.Marshal(map[string]any{"returner": "kafka", "opts": opts("stock"), "calls": calls})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "../testdata/stock.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(filepath.Dir(python), "..", "kafka"))
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte(`{"answers": [{"value": null}, {"value": null}, {"value": null}]}`)) {
		t.Fatalf("stock: %v %s", err, out)
	}
	want, got := read(t, cluster.ListenAddrs(), "stock", len(jids)), read(t, cluster.ListenAddrs(), "ours", len(jids))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-stock +ours):\n%s", diff)
	}
}

// read gives so many messages of a topic, by their keys.
func read(t *testing.T, servers []string, topic string, n int) map[string]message {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	all := map[string]message{}
	for len(all) < n {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err0(); err != nil {
			t.Fatalf("%d messages of %s: %v", len(all), topic, err)
		}
		fetched.EachRecord(func(r *kgo.Record) { all[string(r.Key)] = message{r.Partition, string(r.Key), string(r.Value)} })
	}
	return all
}

// TestWithoutSettings: what is missing is an error of the log, as in stock.
func TestWithoutSettings(t *testing.T) {
	for want, opts := range map[string]map[string]any{
		"option: topic":     {},
		"option: bootstrap": {"returner.kafka.topic": "t"},
	} {
		e := modulestest.Env(t)
		e.Opts = func() map[string]any { return opts }
		var log bytes.Buffer
		e.Log = slog.New(slog.NewTextHandler(&log, nil))
		res := modules.NewRegistry(Module()).Run(t.Context(), e, modules.Request{Fun: "kafka.returner", Args: []any{aReturn("1")}})
		if res.Err != nil || !strings.Contains(log.String(), "Unable to find kafka returner config "+want) {
			t.Errorf("%v: %v, %s", opts, res.Err, log.String())
		}
	}
}

// TestTooManyWait: a message is an error of the log at once while as many as may wait do.
func TestTooManyWait(t *testing.T) {
	waiting.Add(most)
	defer waiting.Add(-most)
	e := modulestest.Env(t)
	e.Opts = func() map[string]any {
		return map[string]any{"returner.kafka.bootstrap": "127.0.0.1:1", "returner.kafka.topic": "t"}
	}
	var log bytes.Buffer
	e.Log = slog.New(slog.NewTextHandler(&log, nil))
	res := modules.NewRegistry(Module()).Run(t.Context(), e, modules.Request{Fun: "kafka.returner", Args: []any{aReturn("20261121100000000004")}})
	if res.Err != nil || !strings.Contains(log.String(), "100 messages wait already") {
		t.Errorf("%v, %s", res.Err, log.String())
	}
	if n := waiting.Load(); n != most {
		t.Errorf("%d messages wait", n)
	}
}
