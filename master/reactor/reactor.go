// Package reactor runs the reactions to events that a master's operator configured. A reaction is a file in the form
// of states, which calls jobs on minions, runners, wheel functions, and execution functions on the master's host. The
// embedding program can add functions of its own.
//
//	reactor:
//	  - 'salt/minion/*/start':
//	    - /srv/reactor/start.sls
//
// A file is rendered with the event's tag and data:
//
//	welcome:
//	  local.cmd.run:
//	    - tgt: {{ data['id'] }}
//	    - args:
//	      - cmd: echo welcome
//
//	event ─▶ rules with a matching tag ─▶ files ─▶ rendered, compiled (states.Reaction) ─▶ chunks
//	                                                   local: published in order, at once
//	                                                   runner, wheel, caller, Do: queue ─▶ workers
//
// Reactions are queued, so the bus never waits for one. If the queue is full reactions are dropped, and the log
// says so. Events of runs that a reactor started cause nothing, or two rules could trigger each other for ever.
//
// Salt's sources: salt/utils/reactor.py, salt/engines/reactor.py.
package reactor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/states"
)

// User is the user of a reactor's jobs and runs (salt/utils/reactor.py, ReactWrap.event_user). Events of that user
// cause nothing.
const User = "Reactor"

// manage begins the tags with which salt-run manages the reactor's rules.
const manage = "salt/reactors/manage/"

// A Rule defines what happens on events with a tag.
type Rule struct {
	// Tag is a pattern of tags, as in a shell.
	Tag string
	// Files are patterns of files on this host, or URLs of the master's file server (salt://).
	Files []string
	// Do, if set, is called in one of the reactor's workers. Its error is logged.
	Do func(ctx context.Context, e events.Event) error
}

// Options of a Reactor.
type Options struct {
	// Master is the master whose events are followed and that publishes the jobs. It is required.
	Master *master.Master
	// ID is the master's id and Key root's key, which events that change the rules must have.
	ID, Key string
	// Rules are the initial rules.
	Rules []Rule
	// RuleFile is a YAML file with the rules, read again for every event, in place of Rules (the option reactor as
	// a path).
	RuleFile string
	// Template renders a file. nil allows only rules with a Do.
	Template func(ctx context.Context, t modules.Template) (any, error)
	// Renderer is the pipe of files that do not name one; empty means "jinja|yaml".
	Renderer string
	// Runner and Wheel run functions on the master; nil refuses them.
	Runner, Wheel *runner.Client
	// Caller runs execution functions on the master's host, for reactions of the kind caller; nil refuses them.
	Caller func(ctx context.Context, q modules.Request) (any, error)
	// Workers is how many reactions run at the same time (reactor_worker_threads), Queue how many may wait
	// (reactor_worker_hwm); 0 means 10 and 10,000.
	Workers, Queue int
	// Log receives errors; nil means no log.
	Log *slog.Logger
}

// A Reactor follows the events of a master.
type Reactor struct {
	o   Options
	log *slog.Logger
	sub *events.Subscription

	mu     sync.Mutex // guards rules and leader
	rules  []Rule
	leader bool
}

// New returns a reactor. Run sees all events that are published from here on.
func New(o Options) (*Reactor, error) {
	if o.Master == nil {
		return nil, errors.New("cannot make a reactor: it needs a master")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Workers <= 0 {
		o.Workers = 10
	}
	if o.Queue <= 0 {
		o.Queue = 10000
	}
	return &Reactor{o: o, log: o.Log, rules: slices.Clone(o.Rules), leader: true,
		sub: o.Master.Events().Subscribe(events.SubscribeOptions{Buffer: o.Queue})}, nil
}

// ParseRules reads the option reactor: a list of maps, each of one pattern to one file or a list of files. As in
// Salt, entries of another form are ignored; the error names them.
func ParseRules(v any) ([]Rule, error) {
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("reactor is %T, not a list", v)
	}
	var rules []Rule
	var errs []error
	for i, x := range list {
		m, ok := x.(map[string]any)
		if !ok || len(m) != 1 {
			errs = append(errs, fmt.Errorf("entry %d of reactor is not a map of one tag", i+1))
			continue
		}
		for tag, v := range m {
			files, err := ParseFiles(v)
			if err != nil {
				errs = append(errs, fmt.Errorf("reactor %q: %w", tag, err))
				continue
			}
			rules = append(rules, Rule{Tag: tag, Files: files})
		}
	}
	return rules, errors.Join(errs...)
}

// ParseFiles reads the files of a rule: one or a list.
func ParseFiles(v any) ([]string, error) {
	switch v := v.(type) {
	case string:
		return []string{v}, nil
	case []string:
		return v, nil
	case []any:
		files := make([]string, len(v))
		for i, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, fmt.Errorf("file %d is %T, not a path", i+1, x)
			}
			files[i] = s
		}
		return files, nil
	}
	return nil, fmt.Errorf("its files are %T, not a list", v)
}

// List returns the current rules.
func (r *Reactor) List() ([]Rule, error) {
	if r.o.RuleFile == "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Clone(r.rules), nil
	}
	b, err := os.ReadFile(r.o.RuleFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the reactor map: %w", err)
	}
	v, err := yaml.Parse(b, r.o.RuleFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the reactor map: %w", err)
	}
	rules, err := ParseRules(v)
	if err != nil {
		r.log.Warn("A part of the reactor map has no effect", "file", r.o.RuleFile, "err", err)
	}
	return rules, nil
}

// Add adds a rule, unless there is one for the same pattern. It reports whether it did.
func (r *Reactor) Add(rule Rule) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.rules, func(have Rule) bool { return have.Tag == rule.Tag }) {
		return false
	}
	r.rules = append(r.rules, rule)
	return true
}

// Delete removes the rule of a pattern and reports whether there was one.
func (r *Reactor) Delete(tag string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.rules, func(have Rule) bool { return have.Tag == tag })
	if i >= 0 {
		r.rules = slices.Delete(r.rules, i, i+1)
	}
	return i >= 0
}

// Leader reports whether this reactor reacts. In a cluster one master does.
func (r *Reactor) Leader() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leader
}

// SetLeader sets whether this reactor reacts.
func (r *Reactor) SetLeader(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leader = on
}

// Run reacts until ctx ends. It returns when no reaction is running any more; running ones see the cancelled ctx.
func (r *Reactor) Run(ctx context.Context) {
	work := make(chan func(context.Context), r.o.Queue)
	var wg sync.WaitGroup
	for range r.o.Workers {
		wg.Go(func() {
			for f := range work {
				r.runGuarded(ctx, f)
			}
		})
	}
	defer wg.Wait()
	defer close(work)
	defer r.sub.Close()
	for e := range r.sub.All(ctx) {
		switch {
		case e.Missed > 0:
			r.log.Error("The reactor is behind and missed events", "events", e.Missed)
		case e.Data["user"] == User:
		case strings.HasPrefix(e.Tag, manage):
			r.manageRules(e)
		case r.Leader():
			r.runGuarded(ctx, func(ctx context.Context) { r.queueReactions(ctx, e, work) })
		}
	}
}

// runGuarded keeps one reaction's panic from ending the others.
func (r *Reactor) runGuarded(ctx context.Context, f func(context.Context)) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("A reaction ended in a panic", "err", p)
		}
	}()
	f(ctx)
}

// queueReactions queues what follows from an event.
func (r *Reactor) queueReactions(ctx context.Context, e events.Event, work chan<- func(context.Context)) {
	rules, err := r.List()
	if err != nil {
		r.log.Error("No reactions", "err", err)
		return
	}
	enqueue := func(what string, f func(context.Context)) {
		select {
		case work <- f:
		default:
			r.log.Error("A reaction was dropped: the queue is full (reactor_worker_threads, reactor_worker_hwm)", "tag", e.Tag, "reaction", what)
		}
	}
	var files []string
	for _, rule := range rules {
		if !fnmatch.Match(rule.Tag, e.Tag) {
			continue
		}
		files = append(files, rule.Files...)
		if do := rule.Do; do != nil {
			enqueue(rule.Tag, func(ctx context.Context) {
				if err := do(ctx, e); err != nil {
					r.log.Error("A reaction failed", "tag", e.Tag, "err", err)
				}
			})
		}
	}
	if len(files) == 0 {
		return
	}
	for _, low := range r.compileFiles(ctx, e, files) {
		run := func(ctx context.Context) {
			if err := r.runChunk(ctx, low); err != nil {
				r.log.Error(fmt.Sprintf("Reactor '%s' failed to execute %s '%s': %v", low.ID(), low.State(), low.Fun(), err), "tag", e.Tag)
			}
		}
		if kind := low.State(); kind == "local" || kind == "cmd" {
			r.runGuarded(ctx, run) // jobs are published in the order of their files, and wait for nothing
		} else {
			enqueue(low.ID(), run)
		}
	}
}

// compileFiles renders the files of an event. A file that cannot be rendered is left out; if the result of all of
// them together is invalid, nothing is done.
func (r *Reactor) compileFiles(ctx context.Context, e events.Event, files []string) []*states.Low {
	high := &pyobj.Dict{}
	for _, f := range files {
		sources, err := r.findFiles(f)
		if err != nil || len(sources) == 0 {
			r.log.Error(fmt.Sprintf("Can not render SLS %s for tag %s. File missing or not found.", f, e.Tag), "err", err)
		}
		for _, src := range sources {
			one, err := r.renderFile(ctx, src, e)
			if err != nil {
				r.log.Error(fmt.Sprintf("Failed to render %q: ", src.path), "tag", e.Tag, "err", err)
				continue
			}
			high.Update(one)
		}
	}
	if high.Len() == 0 {
		return nil
	}
	chunks, errs := states.Reaction(high)
	if errs != nil {
		r.log.Error(fmt.Sprintf("Unable to render reactions for event %s due to errors (%s) in one or more of the sls files", e.Tag, strings.Join(errs, "; ")))
	}
	return chunks
}

// source is a reaction file.
type source struct{ path, text string }

// maxFile limits a reaction file, in bytes.
const maxFile = 4 << 20

// findFiles reads the files that a rule's entry names.
func (r *Reactor) findFiles(entry string) ([]source, error) {
	if url, ok := strings.CutPrefix(entry, "salt://"); ok {
		name, env := url, "base"
		if path, query, ok := strings.Cut(url, "?saltenv="); ok {
			name, env = path, query
		}
		var text []byte
		for {
			c, err := r.o.Master.Files().Read(name, env, int64(len(text)), 0)
			if err != nil {
				return nil, err
			}
			if text = append(text, c.Data...); len(text) > maxFile {
				return nil, fmt.Errorf("it is larger than %d bytes", maxFile)
			}
			if len(c.Data) == 0 {
				return []source{{entry, string(text)}}, nil
			}
		}
	}
	paths, err := filepath.Glob(entry)
	var list []source
	for _, p := range paths {
		info, err := os.Stat(p)
		if err == nil && info.Size() > maxFile {
			err = fmt.Errorf("it is larger than %d bytes", maxFile)
		}
		var b []byte
		if err == nil {
			b, err = os.ReadFile(p)
		}
		if err != nil {
			r.log.Error(fmt.Sprintf("Failed to render %q: ", p), "err", err)
			continue
		}
		list = append(list, source{p, string(b)})
	}
	return list, err
}

// renderFile returns the high data of one file.
func (r *Reactor) renderFile(ctx context.Context, src source, e events.Event) (*pyobj.Dict, error) {
	if strings.TrimSpace(src.text) == "" {
		return &pyobj.Dict{}, nil
	}
	if r.o.Template == nil {
		return nil, errors.New("this master renders no files")
	}
	v, err := r.o.Template(ctx, modules.Template{Text: src.text, Pipe: r.o.Renderer, Shebang: true, Path: src.path,
		Vars: map[string]any{"tag": e.Tag, "data": pyobj.From(e.Ordered())}})
	if err != nil {
		return nil, err
	}
	if !pyobj.Truth(v) {
		return &pyobj.Dict{}, nil
	}
	d, ok := v.(*pyobj.Dict)
	if !ok {
		return nil, fmt.Errorf("it renders to %s, not to a dictionary", pyobj.TypeName(v))
	}
	for _, body := range d.All() {
		if b, ok := body.(*pyobj.Dict); ok {
			_ = b.Set("__sls__", src.path)
		}
	}
	return d, nil
}
