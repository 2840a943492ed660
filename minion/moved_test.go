package minion

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// names is a resolver, and a dialer that asks it at every connection.
type names struct {
	transport.Dialer
	mu    sync.Mutex
	addrs []string // guarded by mu; of the one name there is
	wrong []string // guarded by mu; what lookup answers in place of addrs
	err   error    // guarded by mu; and its error
}

func (d *names) mislead(err error, wrong ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err, d.wrong = err, wrong
}

func (d *names) point(addrs ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addrs = addrs
}

func (d *names) lookup(_ context.Context, host string) ([]string, error) {
	if host != "salt" {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wrong != nil || d.err != nil {
		return d.wrong, d.err
	}
	return slices.Clone(d.addrs), nil
}

func (d *names) resolve(addr string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, port, _ := strings.Cut(addr, ":")
	return d.addrs[0] + ":" + port
}

func (d *names) Requester(o transport.ClientOptions) (transport.Requester, error) {
	o.RequestAddr = d.resolve(o.RequestAddr)
	return d.Dialer.Requester(o)
}

func (d *names) Subscribe(ctx context.Context, o transport.ClientOptions) (transport.Subscriber, error) {
	o.PublishAddr = d.resolve(o.PublishAddr)
	return d.Dialer.Subscribe(ctx, o)
}

// namedRig is a minion whose master is called "salt", at the first of two addresses with a master each.
func namedRig(t *testing.T, n *mem.Network) (one, two *fakeMaster, d *names, r *rig) {
	t.Helper()
	one, two = newFake(t, n, "10.0.0.1:4506"), newFake(t, n, "10.0.0.2:4506")
	d = &names{Dialer: n.Dialer(), addrs: []string{"10.0.0.1"}}
	r = newRig(t, n, map[string]any{"master": "salt", "auth_timeout": int64(1)})
	r.o.Dialers["mem"], r.o.Lookup = d, d.lookup
	r.start()
	r.until(Connected)
	one.subscribed(1)
	return one, two, d, r
}

// D2: the name leads elsewhere while the old address still works.
func TestMovedName(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		one, two, d, r := namedRig(t, n)
		time.Sleep(3 * time.Hour)
		if auths, _ := one.signIns(); auths != 1 {
			t.Errorf("%d sign-ins although nothing changed", auths)
		}
		d.point("10.0.0.2")
		begin := time.Now()
		two.subscribed(1)
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("at the new address after %v", took)
		}
		if one.srv.Subscribers() != 0 {
			t.Error("still at the old address")
		}
		two.publish(jobMap(jidAt(1), "test.ping", nil))
		two.await("return", isReturn(jidAt(1)))
		if !r.log.has(errMoved.Error()) {
			t.Error("the log does not say why")
		}
	})
}

// A return that is being sent when the minion moves reaches the new master.
func TestMovedNameWhileReturning(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		one, two, d, _ := namedRig(t, n)
		one.publish(jobMap(jidAt(1), "test.sleep", map[string]any{"arg": []any{int64(300)}}))
		time.Sleep(time.Second)
		d.point("10.0.0.2")
		two.subscribed(1)
		two.await("return", isReturn(jidAt(1)))
	})
}

// Nobody answers at the new address: better the old one.
func TestMovedNameLeadsNowhere(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		one, two, d, _ := namedRig(t, n)
		two.stop()
		d.point("10.0.0.2")
		time.Sleep(time.Hour)
		if auths, _ := one.signIns(); auths != 1 || one.srv.Subscribers() != 1 {
			t.Errorf("%d sign-ins, %d subscribers at the old address", auths, one.srv.Subscribers())
		}
		two.start()
		two.subscribed(1)
	})
}

// A resolver that fails, or whose answer is another part of a large set each time.
func TestRestlessResolver(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		one, _, d, _ := namedRig(t, n)
		d.mislead(errors.New("the resolver is down"))
		time.Sleep(time.Hour)
		if auths, _ := one.signIns(); auths != 1 {
			t.Errorf("%d sign-ins while the resolver is down", auths)
		}
		d.mislead(nil, "10.9.9.9")
		time.Sleep(24 * time.Hour)
		if auths, _ := one.signIns(); auths < 2 || auths > 60 {
			t.Errorf("%d sign-ins in a day of wrong answers", auths)
		}
	})
}

// D1: a deleted key is noticed although nothing is asked and nothing published.
func TestDeletedKeyIsNoticed(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, nil)
		r.start()
		r.until(Connected)
		f.subscribed(1)
		time.Sleep(time.Hour)
		f.set(func() { f.pub, f.verdict = nil, true })
		begin := time.Now()
		r.until(Pending)
		if took := time.Since(begin); took > 15*time.Minute {
			t.Errorf("noticed after %v", took)
		}
		f.set(func() { f.verdict = nil })
		r.until(Connected)
	})
}

// With master_alive_interval it is noticed sooner.
func TestDeletedKeyAndAliveInterval(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"master_alive_interval": int64(30)})
		r.start()
		r.until(Connected)
		f.subscribed(1)
		time.Sleep(time.Hour)
		f.set(func() { f.pub, f.verdict = nil, true })
		begin := time.Now()
		r.until(Pending)
		if took := time.Since(begin); took > 2*time.Minute {
			t.Errorf("noticed after %v", took)
		}
	})
}
