package content

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/master/store"
)

// TestContentIsShared: one tenant's orders may carry half of what all may, whatever they carry; the others keep their room, and what
// has ended is free again.
func TestContentIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		contents, _ := store.ContentsOf(store.NewMemory())
		c := &Carrier{Contents: contents, Seal: xor{}, Log: slog.New(slog.DiscardHandler),
			Limits: Limits{Files: 10, Bytes: 1 << 20, Pillar: 1 << 20, Total: 1_000_000}}
		text := strings.Repeat("x", 10_000)
		put := func(tenant string, cargo Cargo) (key string, err error) {
			t.Helper()
			key, _, err = c.Store(t.Context(), tenant, cargo, map[string]any{"digest": "x", "arg": []any{text}})
			return key, err
		}
		var keys []string
		fill := func(tenant string, cargo Cargo) (n int) {
			t.Helper()
			for ; n < 1000; n++ {
				key, err := put(tenant, cargo)
				if errors.Is(err, ErrFull) {
					return n
				}
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, key)
			}
			return n
		}
		for _, one := range []struct {
			name  string
			cargo Cargo
		}{{"files", Cargo{Files: map[string]string{"a": text}}}, {"pillar", Cargo{Pillar: map[string]any{"a": text}}}, {"arguments", Cargo{Secret: true}}} {
			keys = nil
			if a, b := fill("a", one.cargo), fill("b", one.cargo); a < 45 || a > 50 || b < a-2 {
				t.Errorf("%s: the first tenant got %d orders, the second %d", one.name, a, b)
			}
			if _, err := put("", one.cargo); !errors.Is(err, ErrFull) {
				t.Errorf("%s: beyond the total: %v", one.name, err)
			}
			for _, key := range keys[:4] {
				if err := contents.DropContent(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := put("a", one.cargo); err != nil {
				t.Errorf("%s: after the end of an order: %v", one.name, err)
			}
			if n, err := contents.ContentSize(t.Context(), ""); err != nil || n > 1_030_000 {
				t.Errorf("%s: %d bytes are stored, %v", one.name, n, err)
			}
			for _, key := range keys {
				if err := contents.DropContent(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := contents.PurgeContents(t.Context(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * sizeLife)
		}
		// A large file is refused while it arrives, not at the next order.
		parts := map[string]string{}
		for i := range 10 {
			parts[fmt.Sprint(i)] = strings.Repeat("x", 100_000)
		}
		if _, err := put("a", Cargo{Files: parts}); !errors.Is(err, ErrFull) {
			t.Errorf("an order larger than the tenant's part: %v", err)
		}
	})
}
