package announced

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/master/bootstrap"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/requests/signin"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/tenants"
)

// TestTenantIsFull: a tenant announces as many minions as it may, and no more until one is gone; the others and the operator go on.
func TestTenantIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, g := newBook(t)
		o := first.Options
		o.MaxTenant = 3
		b := New(o)
		known := bootstrap.Bootstrap{Masters: []string{"salt.example"}}
		announce := func(b *Book, tenant, id string) error {
			_, err := b.Ensure(t.Context(), Spec{ID: id, Tenant: tenant}, true, known)
			return err
		}
		last := 0
		fill := func(b *Book, tenant string) (n int) {
			t.Helper()
			for ; n < 10; n++ {
				last++
				if err := announce(b, tenant, fmt.Sprint("m", last)); errors.Is(err, ErrTenantFull) {
					return n
				} else if err != nil {
					t.Fatal(err)
				}
			}
			return n
		}
		if err := announce(b, "blue", "m"); err != nil {
			t.Fatal(err)
		}
		if n := fill(b, "blue"); n != 2 {
			t.Errorf("the tenant announced %d more", n)
		}
		if err := announce(b, "blue", "m"); err != nil {
			t.Error("again, what is announced already:", err)
		}
		if n := fill(b, "red"); n != 3 {
			t.Errorf("the other tenant announced %d", n)
		}
		if n := fill(b, ""); n != 10 {
			t.Errorf("without a tenant %d were announced", n)
		}
		if err := b.Forget(t.Context(), "m"); err != nil {
			t.Fatal(err)
		}
		if n := fill(b, "blue"); n != 1 {
			t.Errorf("after the end of one, %d more", n)
		}
		// A peer master of the same store counts as well, and sees within countLife what is gone.
		o.Tenants = tenants.New(o.Minions, slog.New(slog.DiscardHandler))
		peer := New(o)
		if n := fill(peer, "blue"); n != 0 {
			t.Errorf("by a peer master, %d more", n)
		}
		list, err := b.List(t.Context(), "blue")
		if err != nil || len(list) != 3 {
			t.Fatal(list, err)
		}
		if err := b.Forget(t.Context(), list[0].ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(countLife + time.Second)
		if n := fill(peer, "blue"); n != 1 {
			t.Errorf("by a peer master, after the end of one, %d", n)
		}
		o.MaxTenant = -1
		if n := fill(New(o), "blue"); n != 10 {
			t.Errorf("without a limit %d were announced", n)
		}
		if usual := New(Options{Keys: requesttest.Keys(t), Grants: g}); usual.MaxTenant != DefaultMaxTenant {
			t.Error(usual.MaxTenant)
		}
	})
}

// TestLargeGrains: an announcement has no more grains than a store of many may keep.
func TestLargeGrains(t *testing.T) {
	b, _ := newBook(t)
	known := bootstrap.Bootstrap{Masters: []string{"salt.example"}}
	for size, want := range map[int]string{maxGrains - 100: "", maxGrains: "more than 262144"} {
		_, err := b.Ensure(t.Context(), Spec{ID: fmt.Sprint("m", size), Grains: map[string]any{"a": strings.Repeat("x", size)}}, true, known)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !errors.Is(err, ErrLargeGrains)) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	metadata := map[string]any{} // the largest that Nova keeps by default
	for i := range 128 {
		metadata[fmt.Sprintf("%s%03d", strings.Repeat("\U0001F600", 252), i)] = strings.Repeat("\U0001F600", 255)
	}
	_, err := b.Ensure(t.Context(), Spec{ID: "nova", Grains: map[string]any{"openstack": map[string]any{"metadata": metadata}}}, true, known)
	if err != nil {
		t.Error(err)
	}
}

// TestGrainsOfSmallTenant: the grains of one minion may be as large as those of any, however few minions a tenant may announce.
func TestGrainsOfSmallTenant(t *testing.T) {
	first, _ := newBook(t)
	o := first.Options
	o.MaxTenant = 2
	b := New(o)
	known := bootstrap.Bootstrap{Masters: []string{"salt.example"}}
	spec := Spec{ID: "one", Tenant: "blue", Grains: map[string]any{"a": strings.Repeat("x", 255<<10)}}
	if _, err := b.Ensure(t.Context(), spec, true, known); err != nil {
		t.Error(err)
	}
	spec.ID = "two"
	if _, err := b.Ensure(t.Context(), spec, true, known); !errors.Is(err, ErrTenantFull) {
		t.Error("a second one:", err)
	}
}

// TestGrainsOfOneTenant: the grains of a tenant's announced minions have a limit together, also when they are announced again with more;
// other tenants keep theirs.
func TestGrainsOfOneTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _ := newBook(t)
		o := first.Options
		o.MaxTenant = 40 // 640 KiB together
		b := New(o)
		known := bootstrap.Bootstrap{Masters: []string{"salt.example"}}
		announce := func(b *Book, tenant, id string, size int) error {
			_, err := b.Ensure(t.Context(), Spec{ID: id, Tenant: tenant, Grains: map[string]any{"a": strings.Repeat("x", size)}}, true, known)
			return err
		}
		for _, id := range []string{"one", "two", "three"} {
			if err := announce(b, "blue", id, 200<<10); err != nil {
				t.Fatal(err)
			}
		}
		peer := New(o) // a peer master of the same store counts what is there
		for _, b := range []*Book{b, peer} {
			if err := announce(b, "blue", "four", 100<<10); !errors.Is(err, ErrTenantFull) || !strings.Contains(fmt.Sprint(err), "of 655360 bytes") {
				t.Error("beyond the limit:", err)
			}
			if err := announce(b, "blue", "one", 250<<10); !errors.Is(err, ErrTenantFull) {
				t.Error("again, with more than there is room for:", err)
			}
			if err := announce(b, "blue", "one", 200<<10); err != nil {
				t.Error("again, as before:", err)
			}
		}
		if err := announce(b, "blue", "small", 100); err != nil {
			t.Error("small grains beside large ones:", err)
		}
		if err := announce(b, "red", "red", 200<<10); err != nil {
			t.Error("of another tenant:", err)
		}
		if err := b.Forget(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}
		if err := announce(b, "blue", "four", 150<<10); err != nil {
			t.Error("after the end of one:", err)
		}
		if err := announce(b, "blue", "three", 100); err != nil {
			t.Error("again, with less:", err)
		}
		time.Sleep(countLife + time.Second)
		if err := announce(b, "blue", "five", 150<<10); err != nil {
			t.Error("after another became small:", err)
		}
	})
}

// TestKeyPairsTakeTurns: for one tenant one key pair is made at a time, so that its announcements keep one processor busy and not all.
func TestKeyPairsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBook(t)
		known := bootstrap.Bootstrap{Masters: []string{"salt.example"}}
		ensure := func(tenant string) error {
			_, err := b.Ensure(t.Context(), Spec{ID: "m" + tenant, Tenant: tenant, KeyPair: true}, true, known)
			return err
		}
		done, err := b.takeTurn(t.Context(), turn{"key pair", "blue"})
		if err != nil {
			t.Fatal(err)
		}
		blue := make(chan error, 1)
		go func() { blue <- ensure("blue") }()
		synctest.Wait()
		select {
		case err := <-blue:
			t.Errorf("the second key pair of a tenant did not wait (error %v)", err)
			blue <- err
		default:
		}
		for _, tenant := range []string{"red", ""} {
			if err := ensure(tenant); err != nil {
				t.Errorf("%q: %v", tenant, err)
			}
		}
		done()
		if err := <-blue; err != nil {
			t.Error(err)
		}
	})
}

type stored interface{ store.Minions }

// reads counts how often a tenant's minions are listed.
type reads struct {
	stored
	lists atomic.Int32
	hold  chan struct{} // if not nil, a list waits for it
}

func (r *reads) Minions(ctx context.Context, f store.MinionFilter) ([]store.Minion, error) {
	r.lists.Add(1)
	if r.hold != nil && f.Tenant == "blue" {
		select {
		case <-r.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return r.stored.Minions(ctx, f)
}

// TestFullTenantCountsOnce: a tenant at its limit costs no list for each request, and a slow list keeps no other tenant waiting.
func TestFullTenantCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _ := newBook(t)
		o := first.Options
		r := &reads{stored: o.Minions}
		o.MaxTenant, o.Minions = 2, r
		b := New(o)
		known := bootstrap.Bootstrap{Masters: []string{"salt.example"}}
		for i := range 50 {
			_, err := b.Ensure(t.Context(), Spec{ID: fmt.Sprint("m", i), Tenant: "blue"}, true, known)
			if errors.Is(err, ErrTenantFull) != (i >= 2) {
				t.Fatal(i, err)
			}
		}
		if n := r.lists.Load(); n > 3 {
			t.Errorf("%d lists", n)
		}
		time.Sleep(2 * countLife)
		r.hold = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for i := range 2 {
			go func() {
				_, err := b.Ensure(ctx, Spec{ID: fmt.Sprint("n", i), Tenant: "blue"}, true, known)
				ended <- err
			}()
		}
		synctest.Wait()
		if _, err := b.Ensure(t.Context(), Spec{ID: "red", Tenant: "red"}, true, known); err != nil {
			t.Error(err)
		}
		cancel()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		close(r.hold)
	})
}

// TestTenantOfChangingMinions: a tenant whose minions come and go announces as many as it likes. Those that joined are not counted and
// keep no grains; those whose token expired unused make room.
func TestTenantOfChangingMinions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _ := newBook(t)
		o := first.Options
		o.MaxTenant = 3
		b := New(o)
		announce := func(id string, ttl time.Duration) (token string, err error) {
			out, err := b.Ensure(t.Context(), Spec{ID: id, Tenant: "blue", TokenTTL: ttl, Grains: map[string]any{"a": "b"}}, true,
				bootstrap.Bootstrap{ID: id, Masters: []string{"salt.example"}})
			return out.Token, err
		}
		for i := range 20 {
			id := fmt.Sprint("joined", i)
			token, err := announce(id, time.Hour)
			if err != nil {
				t.Fatal(i, err)
			}
			if v := join(t, b, id, token, requesttest.Key()); v.Decision != signin.Accept {
				t.Fatal(v)
			}
			if _, err := announce(id, time.Hour); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * countLife)
		}
		list, err := b.List(t.Context(), "blue")
		if err != nil || len(list) != 20 || !list[0].Joined || len(list[0].Grains) > 0 {
			t.Fatal(list, err)
		}
		for i := range 20 { // each third finds no room but what has expired
			if _, err := announce(fmt.Sprint("lost", i), time.Minute); err != nil {
				t.Fatal(i, err)
			}
			time.Sleep(40 * time.Second)
		}
		if list, err := b.Absent(t.Context(), "blue"); err != nil || len(list) > 3 {
			t.Error(list, err)
		}
	})
}
