// Package grains gathers facts about the minion's machine, under Salt's names and with Salt's values
// (salt/grains/*.py, salt.loader.grains). The caller caches, sends and refreshes the result.
//
// Sources run in parallel, each with a deadline. A resolver that does not answer, or a hanging program, delays the
// result by at most that deadline and loses only its own grains. Where Salt runs "ip" and parses its output, this
// package queries the kernel.
//
// docs/grains.md lists the differences from Salt. In short: there are no python* grains, no saltpath and no
// zmqversion, because there is no Python and no libzmq. saltversion is the version of Salt that the minion is
// compatible with, and brineversion is its own.
//
// This is the only library package that reads the environment (PATH, SHELL, the locale) and the working
// directory, because some grains describe the process. Options.Getenv replaces the environment.
package grains

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// DefaultSaltVersion is the release of Salt that the minion reports in saltversion.
const DefaultSaltVersion = "3007.16"

// DefaultTimeout is the default deadline of one source.
const DefaultTimeout = 2 * time.Second

// Options configure what is gathered, and from where. The zero value means the running system without configuration.
type Options struct {
	// Root is the root directory of the described machine; "" means the running system. With another root no
	// program runs and only files are read, which suits tests and images.
	Root string
	// Opts is the minion's configuration under Salt's names. Its "grains" must come from the configuration
	// files, not from earlier gathering.
	Opts map[string]any
	// Log receives errors of sources; nil discards them.
	Log *slog.Logger
	// Timeout is the deadline of a source; 0 means DefaultTimeout.
	Timeout time.Duration
	// SaltVersion is the grain saltversion; "" means DefaultSaltVersion.
	SaltVersion string
	// Version is the grain brineversion; "" leaves it out.
	Version string
	// GrainsFile is the file of static grains; "" means "grains" in the directory of the option conf_file.
	// Files *.conf in the directory "<file>.d" are read after it, in order of their names.
	GrainsFile string
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string
	// Custom are the embedder's sources; later ones take precedence. Their grains override all others except those of
	// the configuration.
	Custom []Source
	// Permit returns why a program may not be started, see [runcmd.Runner]; nil permits every program.
	Permit func(path string) error
	// Refresh ignores the grains cache (option grains_cache).
	Refresh bool
}

// Source is a custom source of grains.
type Source struct {
	// Name is the source's name in log messages.
	Name string
	// Gather returns the grains; a payload.OrderedMap among them keeps its order. It receives the grains of the
	// built-in sources and must not modify them. Results that arrive after ctx ended are dropped.
	Gather func(ctx context.Context, grains map[string]any) (map[string]any, error)
	// Timeout is the deadline of this source; 0 means that of the others.
	Timeout time.Duration
}

// source is a built-in source.
type source struct {
	name string
	// slow gives a source five times the usual deadline, because it makes several requests one after another.
	slow   bool
	limit  time.Duration // replaces the usual deadline if it is not 0
	gather func(ctx context.Context, h *host) (map[string]any, error)
}

// Gather returns all grains. It never fails: a grain that cannot be determined is missing, and the reason is
// logged. It takes slightly more than Options.Timeout at most, and less if ctx ends. Values have the types of
// package payload (int64, []any, map[string]any).
func Gather(ctx context.Context, o Options) map[string]any { return pyobj.PlainMap(gather(ctx, o)) }

// GatherOrdered is [Gather] with every map in Salt's order.
func GatherOrdered(ctx context.Context, o Options) payload.OrderedMap {
	m, _ := ordered.ToWire(gather(ctx, o)).(payload.OrderedMap)
	return m
}

func gather(ctx context.Context, o Options) *pyobj.Dict {
	if truth(o.Opts["skip_grains"]) {
		return &pyobj.Dict{}
	}
	if !o.Refresh && truth(o.Opts["grains_cache"]) {
		if cached, ok := loadCache(o); ok {
			return cached
		}
	}
	h := newHost(o)
	defer h.close()
	m := merger{deep: o.Opts["grains_deep_merge"] == any(true),
		blocked: blacklist(o.Opts["grains_blacklist"]), grains: &pyobj.Dict{}}
	for _, found := range h.runAll(ctx, sources(h.live)) {
		m.add(found)
	}
	if len(o.Custom) > 0 {
		for _, found := range h.runAll(ctx, customSources(o.Custom, pyobj.PlainMap(m.grains))) {
			m.add(found)
		}
	}
	if static, ok := o.Opts["grains"].(map[string]any); ok {
		// As in Salt, these are neither merged deeply nor filtered.
		m.grains.Update(pyobj.FromMap(static))
	}
	if truth(o.Opts["grains_cache"]) {
		if err := saveCache(o, m.grains); err != nil {
			h.log.Warn("Cannot write the grains cache", "err", err)
		}
	}
	return m.grains
}

// sources returns the sources; later ones override earlier ones. As in Salt, core comes first and then the other
// modules by name. A root other than the running system's is treated as a Linux system.
func sources(live bool) []source {
	list := coreSources()
	if live {
		list = append(list, platformSources()...)
	} else {
		list = append(list, linuxSources()...)
	}
	return append(list,
		source{name: "disks", gather: disks},
		source{name: "static", gather: static},
		source{name: "extra", gather: extra},
		source{name: "fibre_channel", gather: fibreChannel},
		source{name: "iscsi", gather: iscsi},
		source{name: "lvm", gather: lvm, slow: true},
		source{name: "mdadm", gather: mdadm},
		source{name: "metadata", gather: metadata, slow: true},
		source{name: "minion_process", gather: process},
		source{name: "nvme", gather: nvme},
		source{name: "opts", gather: optsGrain},
		source{name: "package", gather: packageGrain},
		source{name: "zfs", gather: zfs},
	)
}

func customSources(custom []Source, grains map[string]any) []source {
	list := make([]source, len(custom))
	for i, c := range custom {
		view := maps.Clone(grains)
		list[i] = source{name: c.Name, slow: c.Timeout > 0, limit: c.Timeout,
			gather: func(ctx context.Context, _ *host) (map[string]any,
				error) {
				return c.Gather(ctx, view)
			}}
	}
	return list
}

// runAll runs the sources in parallel and returns their grains in the same order. It does not wait for a source
// past its deadline. Such a source ends when its program or look-up is stopped.
func (h *host) runAll(ctx context.Context, list []source) []map[string]any {
	type result struct {
		index int
		found map[string]any
	}
	results := make(chan result, len(list))
	late := h.timeout
	for i, s := range list {
		limit := h.timeout
		if s.slow {
			limit *= 5
		}
		if s.limit > 0 {
			limit = s.limit
		}
		late = max(late, limit)
		go func() {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			results <- result{i, h.runOne(ctx, s)}
		}()
	}
	found := make([]map[string]any, len(list))
	pending := make(map[int]bool, len(list))
	for i := range list {
		pending[i] = true
	}
	// Sources that respect their deadline have returned by then; one that is stuck in a system call has not.
	soon := time.NewTimer(h.timeout + h.timeout/4)
	defer soon.Stop()
	end := time.NewTimer(late + late/4)
	defer end.Stop()
	for len(pending) > 0 {
		select {
		case r := <-results:
			found[r.index] = r.found
			delete(pending, r.index)
			continue
		case <-soon.C:
			for i := range pending {
				if !list[i].slow {
					h.giveUp(list[i].name)
					delete(pending, i)
				}
			}
			continue
		case <-end.C:
		case <-ctx.Done():
		}
		for i := range pending {
			h.giveUp(list[i].name)
		}
		break
	}
	return found
}

func (h *host) giveUp(name string) {
	h.log.Warn("Source of grains did not answer in time", "source", name)
}

// runOne runs a source and recovers from its panics.
func (h *host) runOne(ctx context.Context, s source) (found map[string]any) {
	defer func() {
		if r := recover(); r != nil {
			h.log.Error("Source of grains failed", "source", s.name, "err", fmt.Sprint(r), "stack",
				string(debug.Stack()))
			found = nil
		}
	}()
	found, err := s.gather(ctx, h)
	if err != nil {
		h.log.Warn("Cannot gather grains", "source", s.name, "err", err)
	}
	return found
}

// merger merges grains.
type merger struct {
	grains  *pyobj.Dict
	deep    bool
	blocked func(key string) bool
}

func (m *merger) add(found map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if m.blocked != nil && m.blocked(key) {
			continue
		}
		v := pyobj.From(found[key])
		if m.deep {
			v = deepMerge(m.grains.Value(key), v)
		}
		_ = m.grains.Set(key, v)
	}
}

// deepMerge implements salt.utils.dictupdate.update without merge_lists: only maps are merged. It does not
// modify its arguments.
func deepMerge(old, add any) any {
	a, ok := add.(*pyobj.Dict)
	if !ok {
		return add
	}
	o, ok := old.(*pyobj.Dict)
	if !ok {
		return add
	}
	merged := o.Copy()
	for k, v := range a.All() {
		_ = merged.Set(k, deepMerge(merged.Value(k), v))
	}
	return merged
}

// blacklist returns the filter of the option grains_blacklist: names, globs, or regular expressions for the
// whole name (salt.utils.stringutils.expr_match).
func blacklist(opt any) func(string) bool {
	var blocks []string
	switch v := opt.(type) {
	case []any:
		for _, x := range v {
			if s, ok := x.(string); ok {
				blocks = append(blocks, s)
			}
		}
	case []string:
		blocks = v
	}
	if len(blocks) == 0 {
		return nil
	}
	regexes := make([]*target.Regex, len(blocks))
	for i, b := range blocks {
		if re, err := target.CompileRegex(`\A` + b + `\Z`); err == nil {
			regexes[i] = re
		}
	}
	return func(key string) bool {
		for i, b := range blocks {
			if target.Glob(b, key) {
				return true
			}
			if regexes[i] != nil {
				if ok, err := regexes[i].MatchStart(key); ok && err == nil {
					return true
				}
			}
		}
		return false
	}
}

// truth reports whether Python would treat an option as set.
func truth(v any) bool {
	switch x := v.(type) {
	case nil:
		return false
	case bool:
		return x
	case int64:
		return x != 0
	case int:
		return x != 0
	case float64:
		return x != 0
	case string:
		return x != ""
	case []any:
		return len(x) > 0
	case map[string]any:
		return len(x) > 0
	}
	return true
}

// enabled reports whether an option that is on by default is on. As in Salt ("is False"), only false turns it
// off.
func enabled(v any) bool { return v != any(false) }

func getenv(o Options) func(string) string {
	if o.Getenv != nil {
		return o.Getenv
	}
	return os.Getenv
}
