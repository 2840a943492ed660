package probe

import "testing"

// TestAnswersThatConcernNobodyElse: IsOwn recognizes answers to this master's own local probes and queries, which
// are not passed to peers.
func TestAnswersThatConcernNobodyElse(t *testing.T) {
	for _, c := range []struct {
		kind  Kind
		of    string
		local bool
		want  bool
	}{{Listening, "a", true, true}, {Status, "a", true, true}, {Listening, "a", false, false},
		{Listening, "b", true, false}} {
		job := SentBy(Metadata(c.kind, c.local), c.of)
		if !IsQuestion(job) || IsProbe(job) != (c.kind == Listening) || Sender(job) != c.of ||
			IsOwn(job, "a") != c.want {
			t.Errorf("%+v: %v", c, job)
		}
	}
	for _, job := range []map[string]any{nil, {"metadata": "knock"},
		{"metadata": map[string]any{"brine": "other"}}} {
		if IsQuestion(job) || IsProbe(job) || IsOwn(job, "a") || Link(job) != "" {
			t.Errorf("%v is taken for a question", job)
		}
	}
	if link := Link(map[string]any{"metadata": LinkMetadata("m")}); link != "m" {
		t.Errorf("link %q", link)
	}
}
