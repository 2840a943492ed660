package master

import (
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/payload"
)

// TestJournalBeginsAgain: the master notices that a minion came back without the journal that it had.
func TestJournalBeginsAgain(t *testing.T) {
	m, err := New(Options{KeySize: 2048})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	since := func(load map[string]any) int64 {
		t.Helper()
		m.minionStarted(t.Context(), "alpha", load)
		x, err := m.minions.Minion(t.Context(), "alpha")
		if err != nil {
			t.Fatal(err)
		}
		n, _ := payload.Int(x.Spec["journal_since"])
		return n
	}
	for _, load := range []map[string]any{
		{"journal": true}, // a minion that does not name its journal
		{"journal": true, "journal_id": "A"},
		{"journal": true, "journal_id": "A"},
	} {
		if n := since(load); n != 0 {
			t.Fatalf("%v: the journal begins again at %d", load, n)
		}
	}
	begun := time.Now().UnixMicro()
	again := since(map[string]any{"journal": true, "journal_id": "B"})
	if again < begun {
		t.Errorf("a new journal begins at %d, before %d", again, begun)
	}
	if n := since(map[string]any{"journal": true, "journal_id": "B"}); n != again {
		t.Errorf("after a restart the journal begins at %d, not %d", n, again)
	}
}
