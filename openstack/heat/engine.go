package heat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/modules"
)

// Options configure an [Engine].
type Options struct {
	Settings
	// Log receives messages, which never contain secrets; nil discards them.
	Log *slog.Logger
	// Call runs the execution function heat.hook.
	Call func(ctx context.Context, fun string, kwargs map[string]any) (any, error)
	// Command, if set, runs the configured command and the reboot.
	Command func(ctx context.Context, shell string, env []string) error
	// Transport, if set, sends requests instead of the network.
	Transport http.RoundTripper
	// Idle, if set, is called after the engine has done something and has nothing to do for at least idlePause, so
	// that the program can return memory to the system.
	Idle func()
	// Drain, if set, makes Run end after running deployments have finished, once it is closed.
	Drain <-chan struct{}
}

// idlePause is the shortest pause between two polls in which the engine counts as idle.
const idlePause = 5 * time.Second

// Engine polls Heat, runs deployments and signals their results. Run may be called once. Once may be called
// repeatedly, but not while Run runs.
type Engine struct {
	o      Options
	log    *slog.Logger
	ks     *keystone
	spool  *spool
	filec  Conf // of the files
	source *collectors
	cache  cache

	mu      sync.Mutex
	running map[string]context.CancelCauseFunc // guarded by mu; by deployment id
	origin  map[string]string                  // guarded by mu; the document of each known deployment
	queue   []*Deployment                      // guarded by mu; in the order of the metadata
	known   map[string]bool                    // guarded by mu; queued or running
	reboot  bool                               // guarded by mu; no more deployments are started
	wake    chan struct{}                      // wakes the loop
	wg      sync.WaitGroup
}

// New creates an engine. It accesses neither disk nor network.
func New(o Options) *Engine {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Command == nil {
		o.Command = runShell
	}
	e := &Engine{o: o, log: o.Log, ks: &keystone{}, running: map[string]context.CancelCauseFunc{}, known: map[string]bool{},
		origin: map[string]string{}, wake: make(chan struct{}, 1)}
	to := newSignaler(e.ks)
	to.web.via = o.Transport
	e.spool = newSpool(filepath.Join(o.state(), "signals"), o.SignalTTL, to, o.Log)
	return e
}

func runShell(ctx context.Context, shell string, env []string) error {
	r := &runcmd.Runner{}
	res, err := r.Run(ctx, modules.Command{Shell: "/bin/sh", Script: shell, Env: env, Dir: "/", Limit: 4 << 10, Grace: killGrace})
	if err == nil && res.ExitCode != 0 {
		err = &commandError{res.ExitCode, strings.TrimSpace(string(res.Stderr))}
	}
	return err
}

// commandError reports the failure of the configured command.
type commandError struct {
	code int
	text string // from its standard error
}

func (e *commandError) Error() string { return fmt.Sprintf("exit code %d: %s", e.code, e.text) }

// poke wakes the loop.
func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// configure reads the configuration files. Options in the metadata and in the minion's configuration take precedence.
func (e *Engine) configure(metadata Conf) error {
	files := make([]string, len(e.o.ConfFiles))
	for i, path := range e.o.ConfFiles {
		files[i] = path
		if path != e.o.conf() {
			files[i] = e.o.at(path)
		}
	}
	conf, err := ReadConf(files...)
	if err != nil {
		return err
	}
	conf.merge(metadata)
	conf.merge(e.o.Over)
	if e.source != nil && conf.Text() == e.filec.Text() {
		return nil
	}
	e.filec = conf
	e.cache = cache{e.o.at(conf.Get("DEFAULT", "cachedir", "/var/lib/os-collect-config"))}
	e.source = newCollectors(conf, e.o.Paths, e.log, e.ks)
	e.source.have, e.source.via = e.cache.has, e.o.Transport
	return nil
}

// cached returns the configuration in the cached metadata, so that a guest finds Heat after a restart.
func (e *Engine) cached() Conf {
	conf := Conf{}
	for _, name := range e.source.names() {
		v, err := e.cache.load(name)
		if m, ok := v.(map[string]any); err == nil && ok {
			conf.merge(FromMetadata(m))
		}
	}
	return conf
}

// Once collects once, and returns the collected documents. With deploy it also runs new deployments and sends waiting
// signals.
func (e *Engine) Once(ctx context.Context, deploy bool) ([]Document, error) {
	return e.once(ctx, deploy, false)
}

// once implements Once. With force, the configured command runs even if the metadata has not changed.
func (e *Engine) once(ctx context.Context, deploy, force bool) ([]Document, error) {
	if err := e.start(); err != nil {
		return nil, err
	}
	if !deploy {
		e.source.have = func(string) bool { return false } // return all metadata
		return e.source.all(ctx), nil
	}
	unlock, err := e.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	e.recover(ctx)
	docs, _, err := e.poll(ctx, force)
	if err != nil {
		return nil, err
	}
	e.begin(ctx)
	e.wg.Wait()
	for e.waiting() && ctx.Err() == nil {
		e.begin(ctx)
		e.wg.Wait()
	}
	e.spool.flush(ctx, true)
	return docs, nil
}

func (e *Engine) start() error {
	if err := e.configure(nil); err != nil {
		return err
	}
	return e.configure(e.cached())
}

// Run works until ctx ends, or until Drain is closed and no deployment is running.
func (e *Engine) Run(ctx context.Context) error {
	unlock, err := e.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := e.start(); err != nil {
		e.log.Error("The configuration of the collectors cannot be used", "err", err)
		if e.source == nil {
			e.source = newCollectors(Conf{}, e.o.Paths, e.log, e.ks)
			e.cache = cache{e.o.at("/var/lib/os-collect-config")}
			e.source.have = e.cache.has
		}
	}
	defer e.wg.Wait()
	if err := e.filec.check(); err != nil {
		e.log.Error("An option of the collectors counts as not set", "err", err)
	}
	e.recover(ctx)
	e.splay(ctx)
	e.log.Info("Polling Heat", "collectors", strings.Join(e.source.names(), " "))
	pause := time.Duration(0)
	for ctx.Err() == nil && !e.drained() {
		_, changed, err := e.poll(ctx, false)
		if err != nil {
			e.log.Error("Metadata cannot be applied", "err", err)
		}
		e.begin(ctx)
		sent, _ := e.spool.flush(ctx, false)
		least := max(10*time.Millisecond, e.filec.Seconds("DEFAULT", "min_polling_interval", time.Second))
		most := max(least, e.filec.Seconds("DEFAULT", "polling_interval", 30*time.Second))
		if pause = min(pause*2, most); changed || sent > 0 || pause < least {
			pause = least // the next deployment in a sequence follows soon
		}
		if e.o.Idle != nil && pause >= idlePause && !e.busy() {
			e.source.hangUp()
			e.spool.to.web.hangUp()
			e.o.Idle()
		}
		e.sleep(ctx, pause)
	}
	return nil
}

// busy reports whether deployments are running.
func (e *Engine) busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) > 0
}

// sleep waits until the next poll. Meanwhile it starts queued deployments and sends signals that are due.
func (e *Engine) sleep(ctx context.Context, pause time.Duration) {
	end := time.NewTimer(pause)
	defer end.Stop()
	for {
		_, next := e.spool.flush(ctx, false)
		var due <-chan time.Time
		if !next.IsZero() {
			t := time.NewTimer(max(time.Until(next), 10*time.Millisecond))
			defer t.Stop()
			due = t.C
		}
		select {
		case <-ctx.Done():
			return
		case <-e.o.Drain:
			if e.drained() {
				return
			}
			select { // start nothing new; the end of a deployment wakes this loop
			case <-ctx.Done():
			case <-e.wake:
			}
			return
		case <-end.C:
			return
		case <-e.wake:
			e.begin(ctx)
			if sent, _ := e.spool.flush(ctx, false); sent > 0 {
				least := max(10*time.Millisecond, e.filec.Seconds("DEFAULT", "min_polling_interval", time.Second))
				end.Reset(min(least, pause))
			}
		case <-due:
		}
	}
}

func (e *Engine) splay(ctx context.Context) {
	if most := e.filec.Seconds("DEFAULT", "splay", 0); most > 0 {
		t := time.NewTimer(rand.N(most))
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

// drained reports whether Drain is closed and no deployment is running.
func (e *Engine) drained() bool {
	select {
	case <-e.o.Drain:
	default:
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) == 0
}

func (e *Engine) waiting() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.queue) > 0 && !e.reboot
}

// poll collects and stores metadata, applies new configuration and queues new deployments. changed reports whether
// the metadata has changed.
func (e *Engine) poll(ctx context.Context, force bool) (docs []Document, changed bool, err error) {
	docs = e.source.all(ctx)
	var names []string
	for _, d := range docs {
		differs, err := e.cache.store(d)
		if err != nil {
			return docs, changed, fmt.Errorf("cannot store the metadata: %w", err)
		}
		if differs {
			changed = true
			names = append(names, d.Name)
		}
	}
	if !changed && !force {
		e.offer(docs)
		return docs, false, ctx.Err()
	}
	if changed {
		if err := e.cache.list(docs); err != nil {
			return docs, changed, fmt.Errorf("cannot store the metadata: %w", err)
		}
		if err := e.backup(); err != nil {
			e.log.Warn("Cannot copy the metadata", "err", err)
		}
	}
	conf := Conf{}
	for _, d := range docs {
		if m, ok := d.Content.(map[string]any); ok {
			conf.merge(FromMetadata(m))
		}
	}
	e.offer(docs)
	if err := e.command(ctx, docs); err != nil {
		return docs, changed, err // the next poll tries again
	}
	for _, name := range names {
		if err := e.cache.commit(name); err != nil {
			return docs, changed, fmt.Errorf("cannot store the metadata: %w", err)
		}
	}
	return docs, changed, e.adopt(conf)
}

// adopt applies the configuration in the metadata, and writes it to the file of os-collect-config.
func (e *Engine) adopt(conf Conf) error {
	if len(conf) == 0 {
		return nil
	}
	if len(e.o.ConfFiles) == 1 && e.o.ConfFiles[0] == e.o.conf() && !e.o.KeepConf {
		file := Conf{}
		file.merge(conf)
		if file.Get("DEFAULT", "command", "") == "" {
			file.add("DEFAULT", "command", "os-refresh-config")
		}
		text := "# Written from the metadata of Heat.\n" + file.Text()
		if old, err := os.ReadFile(e.o.conf()); err != nil || string(old) != text {
			if err := writePrivate(e.o.conf(), []byte(text)); err != nil {
				e.log.Warn("Cannot write the configuration of the collectors", "err", err)
			}
		}
	}
	before := e.filec.Text()
	if err := e.configure(conf); err != nil {
		return err
	}
	if e.filec.Text() != before {
		e.log.Info("The metadata changed the configuration of the collectors", "collectors", strings.Join(e.source.names(), " "))
		e.poke()
	}
	return nil
}

// backup replaces the copy of the cache that older versions of os-apply-config read.
func (e *Engine) backup() error {
	dir := e.filec.Get("DEFAULT", "backup_cachedir", "/var/run/os-collect-config")
	if dir == "" {
		return nil
	}
	dir = e.o.at(dir)
	old, err := filepath.Glob(filepath.Join(dir, "*.json*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(e.cache.dir, "*.json*"))
	if err != nil {
		return err
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err == nil {
			err = writePrivate(filepath.Join(dir, filepath.Base(path)), b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// command runs the configured command with the list of collected files.
func (e *Engine) command(ctx context.Context, docs []Document) error {
	shell := e.o.Settings.Command
	if shell == "" {
		shell = e.filec.Get("DEFAULT", "command", "")
		if first, _, _ := strings.Cut(strings.TrimSpace(shell), " "); filepath.Base(first) == "os-refresh-config" {
			return nil // this engine replaces it
		}
	}
	if shell == "" {
		return nil
	}
	paths := make([]string, len(docs))
	for i, d := range docs {
		paths[i] = e.cache.path(d.Name)
	}
	if err := e.o.Command(ctx, shell, []string{"OS_CONFIG_FILES=" + strings.Join(paths, ":")}); err != nil {
		return fmt.Errorf("the command %q failed: %w", shell, err)
	}
	return nil
}

// offer queues the new deployments in the documents, and stops running deployments that Heat has withdrawn.
func (e *Engine) offer(docs []Document) {
	for _, doc := range docs {
		m, _ := doc.Content.(map[string]any)
		v, has := m["deployments"]
		if !has {
			continue
		}
		list, ok := v.([]any)
		if !ok {
			e.log.Error("Damaged metadata: deployments must be a list", "collector", doc.Name, "is", kind(v))
			continue
		}
		wanted := map[string]bool{}
		damaged := false
		for _, v := range list {
			d, err := NewDeployment(v)
			if err != nil && (d == nil || d.ID == "") {
				e.log.Error("A deployment cannot be used", "collector", doc.Name, "err", err)
				damaged = true
				continue
			}
			wanted[d.ID] = true
			e.take(d, err, doc.Name)
		}
		if !damaged {
			e.withdraw(doc.Name, wanted)
		}
	}
}

// withdraw drops the deployments of a document that are no longer wanted, and stops those that are running.
func (e *Engine) withdraw(from string, wanted map[string]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, cancel := range e.running {
		if e.origin[id] == from && !wanted[id] {
			e.log.Warn("Heat has withdrawn a deployment that is running: it is stopped", "deployment", id)
			cancel(errWithdrawn)
		}
	}
	e.queue = slices.DeleteFunc(e.queue, func(d *Deployment) bool {
		gone := e.origin[d.ID] == from && !wanted[d.ID]
		if gone {
			delete(e.known, d.ID)
			delete(e.origin, d.ID)
		}
		return gone
	})
}

var errWithdrawn = errors.New("Heat has withdrawn the deployment")

// take queues a deployment unless it was started before. bad is an error in the deployment, or nil.
func (e *Engine) take(d *Deployment, bad error, from string) {
	if bad == nil {
		switch bad = d.resolve(); {
		case errors.Is(bad, errNoTool):
			return
		case bad == nil && d.Ungrouped():
			return
		}
	}
	e.mu.Lock()
	known := e.known[d.ID]
	e.mu.Unlock()
	if known {
		return
	}
	if _, err := os.Stat(e.o.deployedPath(d.ID)); err == nil {
		if r, ok := e.o.readRecord(d.ID); !ok || r.State != stateResume {
			e.spool.renew(d)
			return
		}
	}
	if bad != nil {
		e.log.Error("A deployment cannot be run", "deployment", d.ID, "name", d.Name, "err", bad)
		if err := e.o.markDeployed(d); err != nil {
			e.log.Error("Cannot note a deployment", "deployment", d.ID, "err", err)
			return
		}
		e.finish(d, failed("%v", bad), record{Started: time.Now()})
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known[d.ID], e.origin[d.ID] = true, from
	e.queue = append(e.queue, d)
}
