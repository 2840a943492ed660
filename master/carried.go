package master

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/orders"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// ErrNoContent is returned for orders with files, pillar or secret arguments when Options.Store cannot keep these.
var ErrNoContent = errors.New("the store keeps nothing that orders carry")

// sealFile has the sealing key of a master alone, in its PKIDir. Masters that share a database have Shared.Key.
const sealFile = "order_seal.key"

// purgeCarried is how often what no order owns any more is looked for.
const purgeCarried = 10 * time.Minute

// carried is what orders carry beside their job; see package orders.
type carried struct {
	m        *Master
	contents store.Contents
	seal     orders.Sealer
	limits   orders.Limits
	files    *orders.Files

	purged time.Time // of maintain only
}

// openCarried prepares what orders carry, if the store can keep it.
func (m *Master) openCarried() error {
	contents, ok := store.ContentsOf(m.store)
	if !ok || m.orders == nil {
		return nil
	}
	c := &carried{m: m, contents: contents, limits: m.opts.OrderLimits}
	if m.shared != nil {
		c.seal = m.shared.seal
	} else {
		key, err := loadSealingKey(m.opts.PKIDir)
		if err != nil {
			return err
		}
		c.seal = sealing{key}
	}
	if c.limits.Total == 0 {
		c.limits.Total = 4 << 30
		if m.opts.Store == nil {
			c.limits.Total = 256 << 20
		}
	}
	c.files = &orders.Files{Queue: m.orders.q, Contents: contents, Seal: c.seal, HashType: m.opts.HashType,
		Tenant: func(ctx context.Context, id string) (string, error) {
			tenant, _, err := m.tenantOf(ctx, id)
			return tenant, err
		}}
	m.carried = c
	return nil
}

// loadSealingKey reads the sealing key of a master alone, and creates it if it is missing. Without a directory it
// lives as long as the process, like everything else of such a master.
func loadSealingKey(dir string) ([]byte, error) {
	key := []byte(rand.Text() + rand.Text())
	if dir == "" {
		return key, nil
	}
	path := filepath.Join(dir, sealFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = atomicfile.Create(path, append(key, '\n'), 0o600)
		if err == nil {
			return key, nil
		}
		if errors.Is(err, fs.ErrExist) { // another process was quicker
			b, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read sealing key of orders: %w", err)
	}
	if b = bytes.TrimSpace(b); len(b) < minSealingKey {
		return nil, fmt.Errorf("sealing key of orders %q has %d bytes, less than %d: restore it; without it what open orders carry is lost",
			path, len(b), minSealingKey)
	}
	return b, nil
}

// carries reports whether an order has more than its job.
func (o Order) carries() bool {
	return len(o.Files) > 0 || o.FileStream != nil || o.Pillar != nil || o.Secret
}

// checkContent reports what is wrong with an order before any of its files is read.
func (m *Master) checkContent(o Order) error {
	if !o.carries() {
		return nil
	}
	if m.carried == nil {
		return ErrNoContent
	}
	if len(o.Files) > 0 || o.FileStream != nil {
		id := o.ID
		if o.Tenant != "" {
			id = strings.TrimPrefix(id, o.Tenant+"/")
		}
		return orders.CheckID(id)
	}
	return nil
}

// fill writes what an order carries.
func (c *carried) fill(ctx context.Context, w *orders.Writer, o Order, args []any) error {
	if o.Secret {
		if err := w.SetArgs(args); err != nil {
			return err
		}
	}
	if o.Pillar != nil {
		p, err := travelled(o.Pillar)
		if err != nil {
			return fmt.Errorf("pillar: %w", err)
		}
		if err := w.SetPillar(p); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		if err := w.AddFile(ctx, name, strings.NewReader(o.Files[name])); err != nil {
			return err
		}
	}
	if o.FileStream == nil {
		return nil
	}
	return o.FileStream(func(name string, content io.Reader) error { return w.AddFile(ctx, name, content) })
}

// travelled is a map as it is after it was packed and unpacked: what two orders are compared by, and minions get.
func travelled(m map[string]any) (map[string]any, error) {
	b, err := payload.Marshal(m)
	if err != nil {
		return nil, err
	}
	v, err := payload.Unmarshal(b)
	if err != nil {
		return nil, err
	}
	out, _ := payload.Map(v)
	return out, nil
}

// digestOnly reads what an order carries, to compare it with an order of the same id, and stores nothing. spec
// becomes what is shown.
func (m *Master) digestOnly(ctx context.Context, o Order, spec map[string]any) error {
	if !o.carries() {
		return nil
	}
	w := orders.NewWriter(nil, m.carried.seal, m.carried.limits)
	if err := m.carried.fill(ctx, w, o, list(spec["arg"])); err != nil {
		return err
	}
	m.carried.describe(spec, w, o)
	return nil
}

// storeContent stores what an order carries and returns its key, empty if there is nothing. spec becomes what
// is shown. wanted is false if no minion will run the order. drop removes it all, if no order owns it in the
// end.
func (m *Master) storeContent(ctx context.Context, o Order, spec map[string]any, wanted bool) (key string, drop func(), err error) {
	drop = func() {}
	if !o.carries() {
		return "", drop, nil
	}
	if !wanted {
		return "", drop, m.digestOnly(ctx, o, spec)
	}
	c := m.carried
	if len(o.Files) > 0 || o.FileStream != nil {
		size, err := c.contents.ContentSize(ctx)
		if err != nil {
			return "", drop, err
		}
		if size >= c.limits.Total {
			return "", drop, fmt.Errorf("open orders carry %d bytes: %w", size, ErrBusy)
		}
	}
	w := orders.NewWriter(c.contents, c.seal, c.limits)
	drop = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
		defer cancel()
		if err := w.Drop(ctx); err != nil {
			m.log.Warn("cannot forget what a refused order carries; that is tried again later", "err", err)
		}
	}
	if err = c.fill(ctx, w, o, list(spec["arg"])); err == nil {
		err = w.Commit(ctx)
	}
	if err != nil {
		drop()
		return "", drop, err
	}
	c.describe(spec, w, o)
	return w.Key(), drop, nil
}

// describe turns the spec of an order into what the store may know: with the names of the files, without secret
// arguments, and with a digest that tells only who has the sealing key whether two orders are the same.
func (c *carried) describe(spec map[string]any, w *orders.Writer, o Order) {
	h := w.Header()
	spec["digests"] = c.seal.Digests(fmt.Appendf(h.Digest(), "%v", spec["digest"]))
	spec["digest"] = spec["digests"].([]string)[0]
	names := make([]any, len(h.Files))
	for i, f := range h.Files {
		names[i] = f.Name
	}
	spec["files"], spec["pillar"] = names, h.Pillar != nil
	if o.Secret {
		_, compound := payload.List(spec["fun"])
		spec["secret"], spec["arg"] = true, orders.Masked(list(spec["arg"]), compound)
	}
}

// carriedBy is what the minions of an order are told of what it carries.
func carriedBy(rec store.Order) (c protocol.Carried) {
	if files, _ := payload.List(rec.Spec["files"]); len(files) > 0 {
		c.Files = rec.ID[strings.LastIndexByte(rec.ID, '/')+1:]
	}
	c.Pillar, _ = rec.Spec["pillar"].(bool)
	return c
}

// sameDigest reports whether an order that is stored asks for the same as another one.
func (m *Master) sameDigest(old, spec map[string]any) bool {
	digest := text(old, "digest")
	if all, ok := spec["digests"].([]string); ok { // under former keys, too
		return slices.Contains(all, digest)
	}
	return digest == spec["digest"]
}

// labelsOf are what an order can be found by: the entries of its metadata that are texts, numbers, true or false.
func labelsOf(metadata any) (map[string]string, error) {
	m, ok := payload.Map(metadata)
	if !ok {
		return nil, nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		switch v := v.(type) {
		case string:
			out[k] = v
		case bool:
			out[k] = strconv.FormatBool(v)
		case float64:
			out[k] = strconv.FormatFloat(v, 'g', -1, 64)
		default:
			if n, ok := payload.Int(v); ok {
				out[k] = strconv.FormatInt(n, 10)
			} else if s, ok := payload.Text(v); ok {
				out[k] = s
			}
		}
	}
	if len(out) > store.MaxLabels {
		return nil, fmt.Errorf("its metadata has %d entries, more than %d", len(out), store.MaxLabels)
	}
	return out, nil
}

// secretArgs opens the arguments of a secret order, nil if it is not one.
func (m *Master) secretArgs(rec store.Order) ([]any, error) {
	if rec.Spec["secret"] != true {
		return nil, nil
	}
	if m.carried == nil {
		return nil, ErrNoContent
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	h, err := orders.ReadHeader(ctx, m.carried.contents, m.carried.seal, rec.Content)
	if err != nil {
		return nil, err
	}
	return append([]any{}, h.Args...), nil
}

// withSecretArgs is a stored job as its minions get it. store.ErrNotFound if it is secret and has ended.
func (m *Master) withSecretArgs(ctx context.Context, j store.Job) (store.Job, error) {
	if !orders.IsSecret(j.Load) || m.orders == nil {
		return j, nil
	}
	rec, err := m.orders.q.OrderOf(ctx, j.JID)
	if err != nil {
		return j, err
	}
	arg, err := m.secretArgs(rec)
	if err == nil && arg != nil {
		j.Arg = arg
	}
	return j, err
}

// lostContent ends deliveries of an order whose sealed content is gone or cannot be opened: trying again would
// not help. Other errors are returned.
func (d *dispatcher) lostContent(ds []store.Delivery, err error) error {
	if !errors.Is(err, orders.ErrUnreadable) && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	d.m.log.Error("cannot send order", "jid", ds[0].JID, "err", err)
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	for _, x := range ds {
		d.settle(ctx, x, store.Lost, false, "it was never sent: what it carries is sealed with a key that the master does not have")
	}
	return nil
}

// concealJobs is a return that describes jobs, without the arguments of secret ones.
func (m *Master) concealJobs(ctx context.Context, load map[string]any, now time.Time) map[string]any {
	out := maps.Clone(load)
	out["return"] = orders.MaskJobs(load["return"], func(jid string) bool {
		job, _ := m.stored(ctx, jid, now)
		return job.secret
	})
	return out
}

// withOrderPillar merges the pillars of the orders that run on a minion over its own.
func (m *Master) withOrderPillar(ctx context.Context, id string, data payload.OrderedMap) payload.OrderedMap {
	if m.carried == nil {
		return data
	}
	all, err := orders.Pillars(ctx, m.orders.q, m.carried.contents, m.carried.seal, id)
	if err != nil {
		m.log.Error("cannot read pillar of an order", "minion", id, "err", err)
		return pillar.MergeOrdered(data, map[string]any{"_errors": []any{pillarFailed}})
	}
	for _, p := range all {
		data = pillar.MergeOrdered(data, p)
	}
	return data
}

// list adds what a minion sees of orders to a listing of the environment that has it.
func (c *carried) list(ctx context.Context, minion string, l fileserver.Listing) (fileserver.Listing, error) {
	files, dirs, err := c.files.List(ctx, minion)
	if err != nil {
		return l, err
	}
	other := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return orders.Owns(n, orders.Env) })
	}
	out := fileserver.Listing{Files: append(other(l.Files), files...), Dirs: append(other(l.Dirs), dirs...), EmptyDirs: other(l.EmptyDirs),
		Links: maps.Clone(l.Links)}
	maps.DeleteFunc(out.Links, func(n, _ string) bool { return orders.Owns(n, orders.Env) })
	slices.Sort(out.Files)
	slices.Sort(out.Dirs)
	return out, nil
}

// purge forgets uploads that broke off, and what an order left that ended at two masters at once.
func (c *carried) purge(ctx context.Context, now time.Time) {
	if c == nil || now.Sub(c.purged) < purgeCarried {
		return
	}
	c.purged = now
	n, err := c.contents.PurgeContents(ctx, now.Add(-2*orders.UploadTime))
	if err != nil && ctx.Err() == nil {
		c.m.log.Warn("cannot forget what ended orders carried", "err", err)
	} else if n > 0 {
		c.m.log.Debug("content without an order forgotten", "pieces", n)
	}
}

// sealArgs is the message of a secret job to other masters: its arguments are sealed apart.
func (s *shared) sealArgs(job map[string]any) (map[string]any, error) {
	b, err := payload.MarshalBin(map[string]any{"arg": job["arg"]})
	if err != nil {
		return nil, err
	}
	sealed, err := s.seal.Seal("publish "+text(job, "jid"), b)
	if err != nil {
		return nil, err
	}
	job = maps.Clone(job)
	_, compound := payload.List(job["fun"])
	job["arg"] = orders.Masked(list(job["arg"]), compound)
	return map[string]any{"job": job, "sealed": sealed}, nil
}

// openArgs gives a job of another master its arguments back.
func (s *shared) openArgs(job map[string]any, sealed []byte) error {
	b, err := s.seal.Open("publish "+text(job, "jid"), sealed)
	if err != nil {
		return err
	}
	v, err := payload.UnmarshalDisk(b, payload.Limits{})
	if err != nil {
		return err
	}
	m, _ := payload.Map(v)
	arg, ok := payload.List(m["arg"])
	if !ok {
		return errors.New("its arguments are not a list")
	}
	job["arg"], job[protocol.SecretField] = arg, true
	return nil
}

// OrderFilter chooses orders. Zero fields choose all.
type OrderFilter struct {
	// Metadata are entries that an order's metadata must have: numbers, true and false as their texts.
	Metadata map[string]string
	// After is the job id behind which to begin, Limit how many orders at most; 0 means 100.
	After string
	Limit int

	tenant string
}

// Orders lists orders as Order reports them, oldest first, of all that are not purged yet. ErrNoOrders when the
// store cannot find orders.
func (m *Master) Orders(ctx context.Context, f OrderFilter) ([]Order, error) {
	labels, ok := store.LabelsOf(m.store)
	if !ok || m.orders == nil {
		return nil, ErrNoOrders
	}
	setDefault(&f.Limit, 100)
	list, err := labels.Orders(ctx, store.OrderFilter{Labels: f.Metadata, Tenant: f.tenant, After: f.After, Limit: f.Limit})
	if err != nil {
		return nil, err
	}
	out := make([]Order, len(list))
	for i, rec := range list {
		out[i] = orderOf(rec)
	}
	return out, nil
}

// Orders is Master.Orders for the orders of the tenant's.
func (t *Tenant) Orders(ctx context.Context, f OrderFilter) ([]Order, error) {
	f.tenant = t.name
	list, err := t.m.Orders(ctx, f)
	list = slices.DeleteFunc(list, func(o Order) bool { return !strings.HasPrefix(o.ID, t.name+"/") })
	for i := range list {
		list[i].ID = strings.TrimPrefix(list[i].ID, t.name+"/")
	}
	return list, err
}
