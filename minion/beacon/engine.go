package beacon

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// A Kind is one kind of beacon, which is a module below salt/beacons in Salt.
type Kind struct {
	// Name is the name in the configuration.
	Name string
	// Available reports whether this host can have such beacons; nil means always.
	Available func(h *Host) bool
	// Validate checks a beacon's configuration; nil means that every configuration is valid. The comments are
	// Salt's.
	Validate func(h *Host, config any) (ok bool, comment string)
	// Look returns what has happened, one map per event. "tag" in a map is appended to the event's tag.
	Look func(ctx context.Context, h *Host, config []any) ([]map[string]any, error)
	// Close releases the beacon's resources; nil means that it has none. config is that of the beacon's last run.
	Close func(h *Host, config []any)
}

// Host is what beacons may use of the minion, and their memory.
type Host struct {
	*modules.Env
	// Exec calls an execution function.
	Exec func(ctx context.Context, fun string, args []any, kwargs map[string]any) (any, error)
	// Refuse returns why a function in the configuration may not be called; nil permits all. The configuration may
	// come from the master, in the pillar.
	Refuse func(ctx context.Context, fun string) error
	// Memory is what beacons store between runs, each under its own keys.
	Memory map[string]any
}

// Options are what an engine needs from its program.
type Options struct {
	// Kinds are the available kinds of beacons, see [Kinds].
	Kinds []*Kind
	// Own returns a kind that the host's owner has installed, which takes precedence over one in Kinds. If the host
	// cannot use it, reason says why. A nil Own returns none.
	Own func(h *Host, name string) (k *Kind, reason string)
	// OwnNames lists the names of these kinds; nil lists none.
	OwnNames func(h *Host) []string
	// Beacons is the option beacons; it is copied.
	Beacons map[string]any
	// Pillar returns the minion's pillar; nil means an empty pillar.
	Pillar func() map[string]any
	// Loop is the option loop_interval; 0 means a second.
	Loop time.Duration
	// Host returns the Host for the beacons of one run. The engine sets Memory.
	Host func(ctx context.Context) *Host
	// StateRunning reports whether a function of the module state runs, for disable_during_state_run.
	StateRunning func() bool
	// Send receives the events of one run: maps with tag, data and beacon_name.
	Send func(events []any)
	// Fire puts an event on the minion's bus; nil means no bus.
	Fire func(tag string, data map[string]any)
	// Spawn runs a function in a goroutine that the program waits for before it ends; nil means a plain goroutine.
	Spawn func(func())
	Log   *slog.Logger
}

// An Engine runs the configured beacons. It is safe for concurrent use.
type Engine struct {
	o Options

	mu      sync.Mutex
	opts    map[string]any       // guarded by mu
	due     map[string]time.Time // guarded by mu; when each beacon runs next
	holding bool                 // guarded by mu; a beacon may hold resources
	timer   *time.Timer          // guarded by mu; nil if there is nothing to run
	ctx     context.Context
	stopped bool // guarded by mu

	// look is separate from mu, because beacons may take long and Manage must not wait for them.
	look   sync.Mutex // held while beacons run
	memory map[string]any
	open   map[string]opened // guarded by look; beacons that may hold resources
	said   map[string]string // guarded by look
}

// opened is a beacon that has run.
type opened struct {
	kind   *Kind
	config []any
}

// New returns an engine. Nothing runs before Start.
func New(o Options) *Engine {
	if o.Loop <= 0 {
		o.Loop = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Spawn == nil {
		o.Spawn = func(f func()) { go f() }
	}
	e := &Engine{o: o}
	// Copy the configuration, since Manage changes it.
	e.opts, _ = nested.Copy(o.Beacons).(map[string]any)
	if e.opts == nil {
		e.opts = map[string]any{}
	}
	return e
}

// Start runs the beacons until ctx ends.
func (e *Engine) Start(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	// Further calls only plan the timer.
	if e.ctx == nil {
		e.ctx = ctx
	}
	e.planTimer()
}

// Stop ends the engine and releases the beacons' resources.
func (e *Engine) Stop() {
	// A run that is waiting to begin checks stopped.
	e.mu.Lock()
	e.stopped = true
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	e.mu.Unlock()
	// Wait for a run in progress.
	e.look.Lock()
	defer e.look.Unlock()
	e.closeAll(func(string) bool { return true })
}

// Refresh applies a changed pillar.
func (e *Engine) Refresh() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.planTimer()
}

// Replace applies a changed configuration.
func (e *Engine) Replace(beacons map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opts, _ = nested.Copy(beacons).(map[string]any)
	if e.opts == nil {
		e.opts = map[string]any{}
	}
	e.planTimer()
}

// merged returns the configuration. The minion's configuration overrides the pillar's. The caller holds mu.
func (e *Engine) merged(pillar, opts bool) map[string]any {
	beacons := map[string]any{}
	if pillar && e.o.Pillar != nil {
		m, _ := e.o.Pillar()["beacons"].(map[string]any)
		maps.Copy(beacons, m)
	}
	if opts {
		maps.Copy(beacons, e.opts)
	}
	return beacons
}

// enabled returns the beacons to run. The caller holds mu.
func (e *Engine) enabled() map[string]any {
	// "enabled: false" at the top turns all beacons off.
	all := e.merged(true, true)
	if on, ok := all["enabled"]; ok && !pytext.Truth(on) {
		return nil
	}
	maps.DeleteFunc(all, func(name string, config any) bool {
		if name == "enabled" {
			return true
		}
		on, ok := flat(config)["enabled"]
		return ok && !pytext.Truth(on)
	})
	return all
}

// flat returns a beacon's configuration as one map. In Salt's format it is a list of maps.
func flat(config any) map[string]any {
	switch c := config.(type) {
	case map[string]any:
		return c
	case []any:
		// Later maps override, as in Salt's updates.
		m := map[string]any{}
		for _, x := range c {
			if part, ok := x.(map[string]any); ok {
				maps.Copy(m, part)
			}
		}
		return m
	}
	return nil
}

// interval returns how often a beacon runs, or 0 if it has no interval.
func (e *Engine) interval(config any) time.Duration {
	v, ok := flat(config)["interval"]
	if !ok || !pytext.Truth(v) {
		return 0
	}
	f, err := number(v)
	if err != nil {
		return 0
	}
	// In Salt, too, the loop interval is the shortest.
	return max(time.Duration(f*float64(time.Second)), e.o.Loop)
}

// planTimer sets the timer to the next run of any beacon. It does nothing before Start. The caller holds mu.
func (e *Engine) planTimer() {
	if e.ctx == nil || e.stopped || e.ctx.Err() != nil {
		return
	}
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	beacons := e.enabled()
	now := time.Now()
	var first time.Time
	for name, config := range beacons {
		at, ok := e.due[name]
		if !ok {
			// As in Salt, a beacon with an interval first runs after one interval.
			at = now.Add(e.interval(config))
			if e.due == nil {
				e.due = map[string]time.Time{}
			}
			e.due[name] = at
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	// A beacon that was removed and added again starts over.
	maps.DeleteFunc(e.due, func(name string, _ time.Time) bool { _, ok := beacons[name]; return !ok })
	if first.IsZero() && e.holding {
		first = now // removed beacons must release their resources
	}
	if !first.IsZero() {
		e.timer = time.AfterFunc(max(first.Sub(now), 0), e.runDue)
	}
}

// runDue runs the beacons that are due. Beacons may take long, so they run in another goroutine, and never two runs
// at the same time.
func (e *Engine) runDue() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return
	}
	e.o.Spawn(func() {
		e.look.Lock()
		defer e.look.Unlock()
		e.mu.Lock()
		if e.stopped || e.ctx.Err() != nil {
			e.mu.Unlock()
			return
		}
		// The configuration may have changed since the timer was set.
		beacons := e.enabled()
		now := time.Now()
		ready := map[string][]any{}
		for name, config := range beacons {
			at, ok := e.due[name]
			if !ok || at.After(now) {
				continue
			}
			// Plan before the run, so that a slow beacon does not run again at once.
			e.due[name] = now.Add(max(e.interval(config), e.o.Loop))
			list, isList := nested.Copy(config).([]any)
			if !isList {
				e.logOnce(name, "Configuration for beacon must be a list.")
				continue
			}
			ready[name] = list
			e.dropEnabled(name)
		}
		// Release mu: a beacon may call functions that manage beacons.
		ctx := e.ctx
		e.mu.Unlock()
		// Release the resources of removed beacons before the others run.
		e.closeAll(func(name string) bool { _, ok := beacons[name]; return !ok })
		if events := e.process(ctx, ready); len(events) > 0 && ctx.Err() == nil {
			e.o.Send(events)
		}
		e.mu.Lock()
		e.holding = len(e.open) > 0
		e.planTimer()
		e.mu.Unlock()
	})
}

// dropEnabled removes "enabled: true" from a beacon that runs, as Salt does. The caller holds mu.
func (e *Engine) dropEnabled(name string) {
	list, ok := e.opts[name].([]any)
	if !ok {
		return
	}
	e.opts[name] = slices.DeleteFunc(slices.Clone(list), func(x any) bool {
		m, ok := x.(map[string]any)
		_, on := m["enabled"]
		return ok && on
	})
}

// process runs beacons, sorted by name, and returns their events (salt/beacons/__init__.py: Beacon.process).
func (e *Engine) process(ctx context.Context, beacons map[string][]any) []any {
	if len(beacons) == 0 {
		return nil
	}
	// One Host serves the whole run.
	h := e.hostFor(ctx)
	var events []any
	for _, name := range slices.Sorted(maps.Keys(beacons)) {
		config := beacons[name]
		settings := flat(config)
		kind, why := e.findKind(h, moduleOf(name, settings))
		if kind == nil {
			e.logOnce(name, "Unable to process beacon "+name+why)
			continue
		}
		// As in Salt, the configuration is validated in each run, because something that a beacon needs may go missing.
		if ok, comment := kind.valid(h, nested.Copy(config)); !ok {
			e.logOnce(name, "Beacon "+name+" configuration invalid, not running.\n"+comment)
			continue
		}
		delete(e.said, name)
		// Beacons get their name, but not the engine's settings.
		config = slices.DeleteFunc(append(config, map[string]any{"_beacon_name": name}), func(x any) bool {
			m, _ := x.(map[string]any)
			_, enabled := m["enabled"]
			_, interval := m["interval"]
			_, pause := m["disable_during_state_run"]
			return enabled || interval || pause
		})
		// A state run changes what beacons watch, so beacons may pause during it.
		if pytext.Truth(settings["disable_during_state_run"]) && e.o.StateRunning != nil && e.o.StateRunning() {
			e.closeBeacon(h, name, opened{kind, config})
			continue
		}
		e.remember(name, opened{kind, config})
		events = append(events, e.runBeacon(ctx, h, kind, name, config)...)
		// run_once disables the beacon after its first run.
		if pytext.Truth(settings["run_once"]) {
			e.mu.Lock()
			e.setEnabled(name, false)
			e.mu.Unlock()
		}
	}
	return events
}

// runBeacon runs one beacon and completes its events. As in Salt, an error becomes an event, so that the master
// receives it.
func (e *Engine) runBeacon(ctx context.Context, h *Host, kind *Kind, name string, config []any) []any {
	tag := "salt/beacon/" + h.ID + "/" + name + "/"
	found, err := safeLook(ctx, h, kind, config)
	if err != nil {
		e.o.Log.Error("Unable to start "+name+" beacon, "+err.Error(), "beacon", name)
		return []any{map[string]any{"tag": tag, "error": err.Error(), "data": map[string]any{}, "beacon_name": kind.Name}}
	}
	var events []any
	// Each event has the minion's id, and a tag below the beacon's.
	for _, data := range found {
		full := tag
		if more, ok := data["tag"]; ok {
			full += pytext.Str(more)
			delete(data, "tag")
		}
		if _, ok := data["id"]; !ok {
			data["id"] = h.ID
		}
		events = append(events, map[string]any{"tag": full, "data": data, "beacon_name": kind.Name})
	}
	return events
}

// safeLook recovers from a panic of a beacon, so that a bad beacon does not end the minion.
func safeLook(ctx context.Context, h *Host, kind *Kind, config []any) (found []map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = modules.Errorf("%v", p)
		}
	}()
	return kind.Look(ctx, h, config)
}

// hostFor returns the Host for one run, with the engine's memory.
func (e *Engine) hostFor(ctx context.Context) *Host {
	h := e.o.Host(ctx)
	if e.memory == nil {
		e.memory = map[string]any{}
	}
	// Each run has a new Host, but the same memory.
	h.Memory = e.memory
	return h
}

// moduleOf returns the kind of a beacon. The setting beacon_module allows several beacons of one kind.
func moduleOf(name string, settings map[string]any) string {
	if m, ok := settings["beacon_module"]; ok && pytext.Truth(m) {
		return pytext.Str(m)
	}
	return name
}

// findKind returns the kind with a name if this host supports it, else the reason, if known.
func (e *Engine) findKind(h *Host, name string) (k *Kind, why string) {
	// A kind of the host's owner replaces one in Kinds.
	if e.o.Own != nil {
		if k, why = e.o.Own(h, name); k != nil {
			return k, ""
		}
		if why != "" {
			why = ": " + why
		}
	}
	for _, k := range e.o.Kinds {
		if k.Name == name && (k.Available == nil || k.Available(h)) {
			return k, ""
		}
	}
	return nil, why
}

// remember records a beacon that may hold resources.
func (e *Engine) remember(name string, o opened) {
	if o.kind.Close == nil {
		return
	}
	if e.open == nil {
		e.open = map[string]opened{}
	}
	e.open[name] = o
}

// closeBeacon releases a beacon's resources.
func (e *Engine) closeBeacon(h *Host, name string, o opened) {
	if o.kind.Close != nil {
		o.kind.Close(h, o.config)
	}
	delete(e.open, name)
}

// closeAll closes the beacons that which selects. The caller holds look.
func (e *Engine) closeAll(which func(name string) bool) {
	for name, o := range e.open {
		if which(name) {
			e.closeBeacon(e.hostFor(context.Background()), name, o)
		}
	}
}

// logOnce logs a problem of a beacon, once until it changes, since beacons may run every second.
func (e *Engine) logOnce(name, what string) {
	if e.said == nil {
		e.said = map[string]string{}
	}
	if e.said[name] != what {
		e.said[name] = what
		e.o.Log.Error(what, "beacon", name)
	}
}

// number converts a value as Python's float does.
func number(v any) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case string:
		return parseFloat(strings.TrimSpace(v))
	}
	n, err := modules.ToInt(v)
	return float64(n), err
}

// valid is Validate for kinds with and without one. As in Look, a panic stops only this beacon.
func (k *Kind) valid(h *Host, config any) (ok bool, comment string) {
	if k.Validate == nil {
		return true, "" // as in Salt, for a beacon without validate
	}
	defer func() {
		if p := recover(); p != nil {
			ok, comment = false, "its validation failed: "+modules.Errorf("%v", p).Error()
		}
	}()
	return k.Validate(h, config)
}
