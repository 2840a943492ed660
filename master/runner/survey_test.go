package runner

import (
	"context"
	"strings"
	"testing"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/payload"
)

// TestSurvey: groups by what was returned, their order, and what is printed of them. interop compares it with stock's.
func TestSurvey(t *testing.T) {
	h, _ := newHost(t)
	var asked host.Job
	h.Run = func(_ context.Context, j host.Job) (map[string]host.Answer, error) {
		asked = j
		return map[string]host.Answer{"web2": {Value: "a\nb\n"}, "web1": {Value: "a\nb\n"}, "db1": {Value: "a\nB\n"}}, nil
	}
	var printed []string
	h.Print = func(line string) { printed = append(printed, line) }
	c := NewClient(h)
	web := map[string]any{"pool": []any{"web1", "web2"}, "result": "a\nb\n"}
	db := map[string]any{"pool": []any{"db1"}, "result": "a\nB\n"}
	for sort, want := range map[string][]any{"down": {web, db}, "up": {db, web}} {
		got := c.Call(t.Context(), Request{Fun: "survey.hash", Args: []any{"*", "config.get", "text"}, Kwargs: map[string]any{"survey_sort": sort, "default": 1}})
		if diff := cmp.Diff(any(want), got.Return); diff != "" || !got.Success {
			t.Errorf("%s (-want +got):\n%s", sort, diff)
		}
	}
	want := host.Job{Tgt: "*", TgtType: "compound", Fun: "config.get", Args: []any{"text"}, Kwargs: map[string]any{"default": 1}, Timeout: asked.Timeout, Gather: asked.Gather}
	if diff := cmp.Diff(want, asked); diff != "" || printed != nil {
		t.Errorf("(-want +got):\n%s\n%v", diff, printed)
	}
	c.Call(t.Context(), Request{Fun: "survey.diff", Args: []any{"*", "config.get", "text"}})
	text := "minion pool :\n------------\n['web1', 'web2']\npool size :\n----------\n    2\npool result :\n------------\n    a\nb\n\n\n" +
		"minion pool :\n------------\n['db1']\npool size :\n----------\n    1\ndifferences from \"web1\" results :\n--------------------------------\n" +
		"--- web1\n+++ db1\n@@ -2 +2 @@\n-b\n+B\n\n"
	if diff := cmp.Diff(text, strings.Join(printed, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, _ := c.Call(t.Context(), Request{Fun: "survey.hash", Args: []any{"*"}}).Return.(string)
	if !strings.Contains(got, "a target and a function are needed") {
		t.Errorf("without a function: %s", got)
	}
}

// TestSurveyKeepsOrder: the keys of returned dictionaries keep their order, and results that differ only in it
// differ. A test in interop compares this with stock.
func TestSurveyKeepsOrder(t *testing.T) {
	h, _ := newHost(t)
	plain := map[string]any{"z": int64(1), "a": map[string]any{"y": int64(2), "b": nil}}
	inner := payload.OrderedMap{{Key: "y", Value: int64(2)}, {Key: "b", Value: nil}}
	zFirst := payload.OrderedMap{{Key: "z", Value: int64(1)}, {Key: "a", Value: inner}}
	aFirst := payload.OrderedMap{{Key: "a", Value: inner}, {Key: "z", Value: int64(1)}}
	h.Run = func(context.Context, host.Job) (map[string]host.Answer, error) {
		return map[string]host.Answer{"m1": {Value: plain, Ordered: zFirst}, "m2": {Value: plain, Ordered: zFirst},
			"m3": {Value: plain, Ordered: aFirst}}, nil
	}
	got := NewClient(h).Call(t.Context(), Request{Fun: "survey.hash", Args: []any{"*", "pillar.get", "d"}})
	want := []any{
		map[string]any{"pool": []any{"m1", "m2"}, "result": "{'z': 1, 'a': {'y': 2, 'b': None}}"},
		map[string]any{"pool": []any{"m3"}, "result": "{'a': {'y': 2, 'b': None}, 'z': 1}"},
	}
	if diff := cmp.Diff(any(want), got.Return); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
