package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.NewMemory() })
}

func TestMulti(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.Multi(store.NewMemory(), store.NewMemory()) })
}

func TestMemoryForgetsTheOldest(t *testing.T) {
	s := store.NewMemory()
	for i := range store.MemoryLimit + 5 {
		if err := s.SaveJob(t.Context(), store.Job{JID: fmt.Sprintf("%020d", i), Created: time.Unix(int64(i), 0)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Job(t.Context(), fmt.Sprintf("%020d", 4)); err == nil {
		t.Fatal("the fifth job is still there")
	}
	if _, err := s.Job(t.Context(), fmt.Sprintf("%020d", 5)); err != nil {
		t.Fatal(err)
	}
}

// TestMemoryForgetsWhatIsLarge: returns use a limited number of bytes. The newest are kept, and so is one that
// alone exceeds the limit.
func TestMemoryForgetsWhatIsLarge(t *testing.T) {
	s := store.NewMemory()
	text := strings.Repeat("x", 1<<20)
	jid := func(i int) string { return fmt.Sprintf("%020d", i) }
	const n = store.MemoryBytes >> 20
	for i := range n + 5 {
		if err := s.SaveJob(t.Context(), store.Job{JID: jid(i), Created: time.Unix(int64(i), 0)}); err != nil {
			t.Fatal(err)
		}
		if first, err := s.SaveReturn(t.Context(), store.Return{JID: jid(i), ID: "m", Load: map[string]any{"return": text}, Received: time.Unix(int64(i), 0)}); !first || err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Job(t.Context(), jid(4)); err == nil {
		t.Error("the fifth job is still there")
	}
	b, _ := store.BoundedOf(s)
	if jobs, bytes, err := b.Size(t.Context()); err != nil || jobs != n-1 || bytes > store.MemoryBytes {
		t.Error(jobs, bytes, err)
	}
	whole := []any{}
	for range n + 1 {
		whole = append(whole, text) // one text, counted as often
	}
	if _, err := s.SaveReturn(t.Context(), store.Return{JID: jid(n + 4), ID: "n", Load: map[string]any{"return": whole}, Received: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if rets, err := s.Returns(t.Context(), jid(n+4)); err != nil || len(rets) != 2 {
		t.Error(len(rets), err)
	}
	if jobs, _, err := b.Size(t.Context()); err != nil || jobs != 1 {
		t.Error(jobs, err)
	}
}
