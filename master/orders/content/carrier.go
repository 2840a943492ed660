package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

const (
	// purgeEvery is the interval of searches for content without an order.
	purgeEvery = 10 * time.Minute
	// dropTime is the time limit for removing a refused order's content.
	dropTime = 10 * time.Second
)

// ErrFull is wrapped by errors for orders beyond Limits.Total, or beyond what one tenant may use of it.
var ErrFull = errors.New("the files and pillar of unfinished orders exceed the limit")

// A Cargo is the content that an order carries besides its job.
type Cargo struct {
	// Files are contents by name. Stream, if set, is called once to add files that may be larger than memory.
	Files  map[string]string
	Stream func(add func(name string, content io.Reader) error) error
	Pillar map[string]any
	// Secret also seals the arguments.
	Secret bool
}

// Empty reports whether the order has nothing besides its job.
func (c Cargo) Empty() bool { return !c.hasFiles() && c.Pillar == nil && !c.Secret }

func (c Cargo) hasFiles() bool { return len(c.Files) > 0 || c.Stream != nil }

// CheckID returns an error if an order with this cargo cannot have the id.
func (c Cargo) CheckID(id string) error {
	if !c.hasFiles() {
		return nil
	}
	return CheckID(id)
}

// A Carrier stores the cargo of orders, describes it in their specs, and serves it to minions.
type Carrier struct {
	Contents store.Contents
	Queue    store.Queue
	Seal     Sealer
	Limits   Limits
	Files    *Files
	Log      *slog.Logger

	purged time.Time // used by Purge only
	room   room
}

// Compare describes an order's cargo in its spec, for comparison with an order of the same id. It stores
// nothing.
func (c *Carrier) Compare(ctx context.Context, cargo Cargo, spec map[string]any) error {
	if cargo.Empty() {
		return nil
	}
	w := NewWriter(nil, c.Seal, c.Limits)
	if err := w.fill(ctx, cargo, spec); err != nil {
		return err
	}
	c.describe(spec, w, cargo)
	return nil
}

// Store stores the cargo of a tenant's order, describes it in its spec, and returns its key. Call drop to remove
// the cargo if the order is not stored after all. Errors may wrap ErrFull or ErrBad.
func (c *Carrier) Store(ctx context.Context, tenant string, cargo Cargo,
	spec map[string]any) (key string, drop func(), err error) {
	w, prefix := NewWriter(c.Contents, c.Seal, c.Limits), prefixOf(tenant)
	w.key = prefix + w.key
	w.room = func(bytes int) error {
		return c.room.take(ctx, c.Contents, prefix, c.Limits.Total, bytes)
	}
	drop = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTime)
		defer cancel()
		if err := w.Drop(ctx); err != nil {
			c.Log.Warn("Cannot remove the content of a refused order; will retry", "err", err)
		}
	}
	if err = w.fill(ctx, cargo, spec); err == nil {
		err = w.Commit(ctx)
	}
	if err != nil {
		drop()
		return "", func() {}, err
	}
	c.describe(spec, w, cargo)
	return w.Key(), drop, nil
}

// fill writes a cargo, including the spec's arguments if it is secret.
func (w *Writer) fill(ctx context.Context, c Cargo, spec map[string]any) error {
	if c.Secret {
		args, _ := payload.List(spec["arg"])
		if err := w.SetArgs(args); err != nil {
			return err
		}
	}
	if c.Pillar != nil {
		p, err := travelled(c.Pillar)
		if err != nil {
			return fmt.Errorf("pillar: %w", err)
		}
		if err := w.SetPillar(p); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		if err := w.AddFile(ctx, name, strings.NewReader(c.Files[name])); err != nil {
			return err
		}
	}
	if c.Stream == nil {
		return nil
	}
	return w.fillFrom(ctx, c.Stream)
}

// errLate is for a call of add after the function that received it has returned.
var errLate = errors.New("cannot add a file: FileStream has returned")

// fillFrom adds the files of a stream. An error of add counts even if the stream ignores it: otherwise the order
// would be placed without this file.
func (w *Writer) fillFrom(ctx context.Context, stream func(func(string, io.Reader) error) error) error {
	var mu sync.Mutex // add may be called by other goroutines of the program, and too late
	var failed error
	ended := false
	err := stream(func(name string, content io.Reader) error {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return errLate
		}
		if failed == nil {
			failed = w.AddFile(ctx, name, content)
		}
		return failed
	})
	mu.Lock()
	defer mu.Unlock()
	ended = true
	return cmp.Or(err, failed)
}

// travelled returns a map after packing and unpacking. That form is what minions receive, and what orders are
// compared by.
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

// describe changes an order's spec to its stored form: with file names, without secret arguments, and with
// digests that can only be compared with the sealing key.
func (c *Carrier) describe(spec map[string]any, w *Writer, cargo Cargo) {
	h := w.Header()
	digests := c.Seal.Digests(fmt.Appendf(h.Digest(), "%v", spec["digest"]))
	spec["digests"], spec["digest"] = digests, digests[0]
	names := make([]any, len(h.Files))
	for i, f := range h.Files {
		names[i] = f.Name
	}
	spec["files"], spec["pillar"] = names, h.Pillar != nil
	if cargo.Secret {
		args, _ := payload.List(spec["arg"])
		_, compound := payload.List(spec["fun"])
		spec["secret"], spec["arg"] = true, Masked(args, compound)
	}
}

// SameDigest reports whether two specs describe the same order.
func SameDigest(old, spec map[string]any) bool {
	digest, _ := payload.Text(old["digest"])
	if all, ok := spec["digests"].([]string); ok { // includes digests under former keys
		return slices.Contains(all, digest)
	}
	return digest == spec["digest"]
}

// Carried returns the description of an order's cargo for its minions.
func Carried(rec store.Order) (c protocol.Carried) {
	if files, _ := payload.List(rec.Spec["files"]); len(files) > 0 {
		c.Files = rec.ID[strings.LastIndexByte(rec.ID, '/')+1:]
	}
	c.Pillar, _ = rec.Spec["pillar"].(bool)
	return c
}

// Labels returns the entries of an order's metadata by which it can be found: texts, numbers and booleans.
func Labels(metadata any) (map[string]string, error) {
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

// IsSealed reports whether a stored order's arguments are in its cargo, where Args reads them.
func IsSealed(rec store.Order) bool { return rec.Spec["secret"] == true }

// Args opens the arguments of a secret order.
func (c *Carrier) Args(ctx context.Context, rec store.Order) ([]any, error) {
	h, err := ReadHeader(ctx, c.Contents, c.Seal, rec.Content)
	if err != nil {
		return nil, err
	}
	return append([]any{}, h.Args...), nil
}

// Pillars returns the pillars of the orders that run on a minion.
func (c *Carrier) Pillars(ctx context.Context, minion string) ([]map[string]any, error) {
	return Pillars(ctx, c.Queue, c.Contents, c.Seal, minion)
}

// List adds the order files that a minion sees to a listing of Env.
func (c *Carrier) List(ctx context.Context, minion string, l fileserver.Listing) (fileserver.Listing, error) {
	files, dirs, err := c.Files.List(ctx, minion)
	if err != nil {
		return l, err
	}
	other := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return Owns(n, Env) })
	}
	out := fileserver.Listing{Files: append(other(l.Files), files...), Dirs: append(other(l.Dirs), dirs...), EmptyDirs: other(l.EmptyDirs),
		Links: maps.Clone(l.Links)}
	maps.DeleteFunc(out.Links, func(n, _ string) bool { return Owns(n, Env) })
	slices.Sort(out.Files)
	slices.Sort(out.Dirs)
	return out, nil
}

// Purge removes incomplete uploads, and content left behind by an order that ended on two masters at once. It
// does so at most every ten minutes. A nil Carrier does nothing.
func (c *Carrier) Purge(ctx context.Context, now time.Time) {
	if c == nil || now.Sub(c.purged) < purgeEvery {
		return
	}
	c.purged = now
	n, err := c.Contents.PurgeContents(ctx, now.Add(-2*UploadTime))
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("Cannot remove the content of ended orders", "err", err)
	} else if n > 0 {
		c.Log.Debug("Content without an order forgotten", "pieces", n)
	}
}

// SealJob returns the message for peers with a secret job, whose arguments are sealed separately.
func SealJob(seal Sealer, job map[string]any) (map[string]any, error) {
	b, err := payload.MarshalBin(map[string]any{"arg": job["arg"]})
	if err != nil {
		return nil, err
	}
	sealed, err := seal.Seal(jobPlace(job), b)
	if err != nil {
		return nil, err
	}
	job = maps.Clone(job)
	args, _ := payload.List(job["arg"])
	_, compound := payload.List(job["fun"])
	job["arg"] = Masked(args, compound)
	return map[string]any{"job": job, "sealed": sealed}, nil
}

// OpenJob restores the arguments of a peer's secret job.
func OpenJob(seal Sealer, job map[string]any, sealed []byte) error {
	b, err := seal.Open(jobPlace(job), sealed)
	if err != nil {
		return err
	}
	v, err := payload.UnmarshalDisk(b, payload.Limits{}, "arg")
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

func jobPlace(job map[string]any) string {
	jid, _ := payload.Text(job["jid"])
	return "publish " + jid
}
