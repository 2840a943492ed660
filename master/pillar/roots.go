package pillar

import (
	"context"
	"log/slog"
	"maps"

	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/states/render"
	"github.com/brine-salt/brine/states/render/pillar"
)

// ExtFunc is an external pillar of the option ext_pillar, ExtRequest its argument.
type (
	ExtFunc    = pillar.ExtFunc
	ExtRequest = pillar.ExtRequest
)

// RootsOptions of Roots.
type RootsOptions struct {
	// Roots is Salt's pillar_roots: directories by environment. nil takes it from Opts.
	Roots map[string][]string
	// Nodegroups are for the top file. nil takes them from Opts.
	Nodegroups map[string]any
	// Opts are options of the master under Salt's names. They change how pillars are compiled (renderer,
	// ext_pillar, pillar_merge_lists …), and templates see them as opts.
	Opts map[string]any
	// Registry holds the functions that templates may call as salt['…'], like the execution modules of a stock
	// master; nil means the program's own. They run on the master, with the minion's grains.
	Registry *modules.Registry
	// Env is the environment of these functions: programs, the file server. ID, options, grains and pillar are
	// set for each minion. Without a Runner no function runs a program.
	Env modules.Env
	// Ext are external pillars by name, besides cmd_json, cmd_yaml, http_json and http_yaml.
	Ext map[string]ExtFunc
	// Version is the version of Salt that pillar_opts shows.
	Version string
	// Log receives errors in files; the minion only learns that there were some. nil discards them.
	Log *slog.Logger
}

// Roots compiles pillars from a top file and pillar files in directories, and from external pillars.
type Roots struct{ compiler *pillar.Compiler }

// NewRoots returns a Roots. It reads no files yet, because they are read for every pillar.
func NewRoots(o RootsOptions) *Roots {
	opts := maps.Clone(o.Opts)
	if opts == nil {
		opts = map[string]any{}
	}
	if o.Nodegroups != nil {
		opts["nodegroups"] = o.Nodegroups
	}
	if opts["__role"] == nil {
		opts["__role"] = "master"
	}
	env := o.Env
	env.Templates = render.Render
	if env.Log == nil {
		env.Log = o.Log
	}
	return &Roots{pillar.New(pillar.Options{Opts: opts, Roots: o.Roots, Registry: o.Registry,
		Env: env, Ext: o.Ext, Version: o.Version, Log: o.Log})}
}

// Pillar implements Func.
func (r *Roots) Pillar(ctx context.Context, q Request) (map[string]any, error) {
	d, err := r.Compile(ctx, q)
	if err != nil {
		return nil, err
	}
	return pyobj.PlainMap(d), nil
}

// Ordered is Pillar with its maps in the order of the files, which templates of states see.
func (r *Roots) Ordered(ctx context.Context, q Request) (payload.OrderedMap, error) {
	d, err := r.Compile(ctx, q)
	if err != nil {
		return nil, err
	}
	return ordered.ToWire(d).(payload.OrderedMap), nil
}

// Compile is Pillar with the values that templates use.
func (r *Roots) Compile(ctx context.Context, q Request) (*pyobj.Dict, error) {
	in := compilerRequest(q)
	if len(q.Override) > 0 {
		in.Override, _ = pyobj.From(q.Override).(*pyobj.Dict)
		if q.OverrideOrder != nil {
			in.Override, _ = pyobj.From(q.OverrideOrder).(*pyobj.Dict)
		}
	}
	return r.compiler.Compile(ctx, in)
}

// compilerRequest returns a request without the pillar of a command.
func compilerRequest(q Request) pillar.Request {
	in := pillar.Request{ID: q.ID, Grains: q.Grains, Saltenv: q.Saltenv, Pillarenv: q.Pillarenv,
		Extra: q.Extra}
	if q.GrainsOrder == nil {
		return in
	}
	in.GrainsOrder = &pyobj.Dict{}
	for _, p := range q.GrainsOrder {
		if inside := pyobj.Order(pyobj.From(p.Value)); inside != nil {
			_ = in.GrainsOrder.Set(p.Key, inside) // cannot fail: p.Key is a key
		}
	}
	return in
}

// Top returns the merged top files for a minion (environments, targets and their pillar files) and the errors
// in them.
func (r *Roots) Top(ctx context.Context, q Request) (map[string]any, []string, error) {
	top, errs, err := r.compiler.Top(ctx, compilerRequest(q))
	if err != nil {
		return nil, nil, err
	}
	return pyobj.PlainMap(top), errs, nil
}

// MergeOrdered is [Merge] for a pillar in order. over is plain or payload.OrderedMap.
func MergeOrdered(base payload.OrderedMap, over any) payload.OrderedMap {
	m, ok := pyobj.From(over).(*pyobj.Dict)
	if !ok {
		return base
	}
	d := &pyobj.Dict{}
	for _, p := range base {
		_ = d.Set(p.Key, p.Value) // cannot fail: the keys come from a dict
	}
	for k, v := range m.All() {
		have, a := d.Value(k).(payload.OrderedMap)
		more, b := v.(*pyobj.Dict)
		if a && b {
			v = MergeOrdered(have, ordered.ToWire(more))
		}
		_ = d.Set(k, v)
	}
	return ordered.ToWire(d).(payload.OrderedMap)
}
