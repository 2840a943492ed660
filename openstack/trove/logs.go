package trove

import (
	"context"
	"io"
	"os"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/modkit/logpub"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// guestLog is a log file that users may read through Trove (trove.guestagent.guest_log).
type guestLog struct {
	name    string
	system  bool // always enabled; can only be published
	file    string
	on, off map[string]any // values that enable and disable it
	enabled bool
	exposed bool

	log *logpub.Log
}

// kind is Trove's name of the log's type.
func (l *guestLog) kind() string {
	if l.system {
		return "SYS"
	}
	return "USER"
}

// allLogs returns the logs of the datastore and of this agent.
func (g *guest) allLogs() ([]*guestLog, error) {
	list, err := g.db.logs()
	if err != nil {
		return nil, err
	}
	own, _ := g.c.Opt("log_file").(string)
	list = append(list, &guestLog{name: "guest", file: own, system: true})
	admin := pytext.Truth(g.req["is_admin"])
	for _, l := range list {
		l.exposed = admin || slices.Contains(g.exposedLogs, "all") || slices.Contains(g.exposedLogs, l.name)
		l.enabled = l.enabled || l.system
		l.log = &logpub.Log{Name: l.name, Type: l.kind(), File: l.file, Prefix: g.c.ID + "/" + g.manager + "-" + l.name + "/",
			Metafile: g.c.ID + "/" + g.manager + "-" + l.name + "_metafile", Limit: g.logLimit, Now: g.c.Now}
		if l.file != "" {
			l.log.Path = g.c.Path(l.file)
		}
	}
	return list, nil
}

// logList implements guest_log_list.
func (g *guest) logList(ctx context.Context) (any, error) {
	all, err := g.allLogs()
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, l := range all {
		if !l.exposed {
			continue
		}
		v, err := g.showLog(ctx, l)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// logAction implements guest_log_action.
func (g *guest) logAction(ctx context.Context) (any, error) {
	name, enable, disable := g.c.Str("log_name"), g.c.Bool("enable"), g.c.Bool("disable")
	publish, discard := g.c.Bool("publish"), g.c.Bool("discard")
	if enable && disable {
		return nil, badRequest("Cannot enable and disable log '%s'.", name)
	}
	// A log must be enabled to be published.
	enable = enable || publish && !disable
	all, err := g.allLogs()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(l *guestLog) bool { return l.name == name })
	if i < 0 {
		return nil, badRequest("Log '%s' is not defined.", name)
	}
	l := all[i]
	if l.system && !publish && (enable || disable) {
		return nil, badRequest("Cannot %s a SYSTEM log ('%s').", map[bool]string{true: "enable", false: "disable"}[enable], name)
	}
	if !l.system && (l.enabled && disable || !l.enabled && enable) {
		if err := g.switchLog(ctx, l, enable); err != nil {
			return nil, err
		}
	}
	if !l.exposed {
		// Whatever the action is: Trove shows the log before it.
		return nil, modules.Errorf("You must be admin to show log '%s'.", name)
	}
	if discard || publish {
		s, err := g.openStore(ctx)
		if err != nil {
			return nil, err
		}
		logs := logStore{s, g.logContainer}
		if discard {
			if err := l.log.Discard(ctx, logs); err != nil {
				return nil, err
			}
		}
		if publish {
			if err := l.log.Publish(ctx, logs); err != nil {
				return nil, err
			}
		}
	}
	return g.showLog(ctx, l)
}

// switchLog enables or disables a log, in the configuration and in the running server.
func (g *guest) switchLog(ctx context.Context, l *guestLog, enable bool) error {
	remove, apply, values := "enable_"+l.name+"_log", "disable_"+l.name+"_log", l.off
	if enable {
		remove, apply, values = apply, remove, l.on
	}
	for _, group := range [...]string{systemAfter, systemBefore} {
		if err := g.removeOverride(group, remove); err != nil {
			return err
		}
	}
	if err := g.applyOverride(systemBefore, apply, values); err != nil {
		return err
	}
	if enable {
		if err := g.createLog(l.file); err != nil {
			return err
		}
	}
	if err := g.db.switchLog(ctx, values); err != nil {
		return err
	}
	l.enabled = enable
	return nil
}

// createLog creates an empty log file that the datastore can write.
func (g *guest) createLog(file string) error {
	f, err := os.OpenFile(g.c.Path(file), os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return modules.Errorf("cannot make the log file %s: %v", file, err)
	}
	if err := f.Close(); err != nil {
		return modules.Errorf("cannot make the log file %s: %v", file, err)
	}
	return g.giveAway(file)
}

// showLog returns a log in Trove's form. Without a store, nothing counts as published.
func (g *guest) showLog(ctx context.Context, l *guestLog) (map[string]any, error) {
	var s logpub.Store
	if len(g.store) > 0 {
		open, err := g.openStore(ctx)
		if err != nil {
			return nil, err
		}
		s = logStore{open, g.logContainer}
	}
	if err := l.log.Refresh(ctx, s); err != nil {
		return nil, err
	}
	status, pending := l.log.State(), l.log.Pending()
	if !l.enabled {
		status, pending = "Disabled", l.log.Size-l.log.Published
	}
	container, prefix := "None", "None"
	if l.log.Published > 0 {
		container, prefix = g.logContainer, l.log.Prefix
	}
	return map[string]any{"name": l.name, "type": l.kind(), "status": status, "published": l.log.Published, "pending": pending,
		"container": container, "prefix": prefix, "metafile": l.log.Metafile}, nil
}

// logStore is the store's container of logs.
type logStore struct {
	store
	container string
}

// Put implements logpub.Store.
func (s logStore) Put(ctx context.Context, name string, r io.Reader, meta map[string]string) error {
	_, err := s.put(ctx, s.container, name, r, meta)
	return err
}

// Get implements logpub.Store.
func (s logStore) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	o, err := s.get(ctx, s.container, name)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// Names implements logpub.Store.
func (s logStore) Names(ctx context.Context, prefix string) ([]string, error) {
	return s.names(ctx, s.container, prefix)
}

// Remove implements logpub.Store.
func (s logStore) Remove(ctx context.Context, name string) error {
	return s.remove(ctx, s.container, name)
}

// timestamp formats a time for the results of modules.
func timestamp(t time.Time) string { return t.Format("2006-01-02 15:04:05.00") }
