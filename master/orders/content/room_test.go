package content

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/master/store"
)

// TestContentIsShared: a tenant's orders may carry as much as remains free afterwards, whatever they carry: half for the first, and there is room
// for more tenants. What has ended is free again.
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
			for i, least := range []int{45, 22, 11, 5, 2} { // each half of what the one before got
				if n := fill(string(rune('a'+i)), one.cargo); n < least || n > least+least/8+2 {
					t.Errorf("%s: tenant %d got %d orders, want at least %d", one.name, i+1, n, least)
				}
			}
			if n := fill("", one.cargo); n == 0 {
				t.Errorf("%s: no room for the operator beside the tenants", one.name)
			}
			for _, key := range keys[:4] {
				if err := contents.DropContent(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * sizeLife)
			if _, err := put("z", one.cargo); err != nil {
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

// measured counts how often contents are measured.
type measured struct {
	store.Contents
	n int
}

func (m *measured) ContentSize(ctx context.Context, prefix string) (int64, error) {
	m.n++
	return m.Contents.ContentSize(ctx, prefix)
}

// TestFullContentIsMeasuredOnce: however many orders a full tenant places, the store measures its content and all content once a second,
// and the sizes of tenants that place no orders are forgotten.
func TestFullContentIsMeasuredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		contents, _ := store.ContentsOf(store.NewMemory())
		m := &measured{Contents: contents}
		c := &Carrier{Contents: m, Seal: xor{}, Log: slog.New(slog.DiscardHandler),
			Limits: Limits{Files: 10, Bytes: 1 << 20, Pillar: 1 << 20, Total: 100_000}}
		place := func(tenant string, size int) error {
			_, _, err := c.Store(t.Context(), tenant, Cargo{Files: map[string]string{"a": strings.Repeat("x", size)}}, map[string]any{"digest": "x"})
			return err
		}
		if err := place("a", 45_000); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if err := place("a", 45_000); !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
		}
		if m.n != 2 {
			t.Errorf("measured %d times within a second", m.n)
		}
		time.Sleep(2 * sizeLife)
		if err := place("b", 10); err != nil || m.n != 4 || len(c.room.sizes) != 2 {
			t.Errorf("%v; measured %d times, %d sizes are kept", err, m.n, len(c.room.sizes))
		}
		// Without a limit there is nothing to measure.
		c.Limits.Total = 0
		time.Sleep(2 * sizeLife)
		if err := place("a", 45_000); err != nil || m.n != 4 {
			t.Errorf("%v; measured %d times", err, m.n)
		}
	})
}
