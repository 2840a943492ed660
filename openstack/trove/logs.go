package trove

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

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
	status  string

	size, published           int64
	header, publishedHeader   string
	exists, exposed, restored bool
}

// metafile is the data about a log in the store, in addition to the log's parts.
type metafile struct {
	Name   string `json:"log_name"`
	Type   string `json:"log_type"`
	File   string `json:"log_file"`
	Size   int64  `json:"log_size"`
	Header string `json:"log_header_digest"`
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
		l.status = map[bool]string{true: "Enabled", false: "Disabled"}[l.enabled]
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
	if discard {
		if err := g.discardLog(ctx, l); err != nil {
			return nil, err
		}
	}
	if publish {
		if err := g.publishLog(ctx, l); err != nil {
			return nil, err
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
	l.enabled, l.status = enable, map[bool]string{true: "Enabled", false: "Disabled"}[enable]
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

func (g *guest) logPrefix(l *guestLog) string { return g.c.ID + "/" + g.manager + "-" + l.name + "/" }

func (g *guest) metafileName(l *guestLog) string {
	return g.c.ID + "/" + g.manager + "-" + l.name + "_metafile"
}

// refreshLog updates the log's size and header, and the data about its published parts.
func (g *guest) refreshLog(ctx context.Context, s store, l *guestLog) error {
	if !l.restored && s != nil {
		r, err := s.get(ctx, g.logContainer, g.metafileName(l))
		switch {
		case missing(err):
		case err != nil:
			return modules.Errorf("cannot read what was published of the log %s: %v", l.name, err)
		default:
			var m metafile
			err := json.NewDecoder(io.LimitReader(r, 1<<20)).Decode(&m)
			_ = r.Close()
			if err != nil {
				return modules.Errorf("cannot read what was published of the log %s: %v", l.name, err)
			}
			l.published, l.publishedHeader = m.Size, m.Header
		}
		l.restored = true
	}
	f, err := os.Open(g.c.Path(l.file))
	if l.file == "" || missing(err) {
		l.published, l.size, l.exists = 0, 0, false
		return nil
	}
	if err != nil {
		return modules.Errorf("cannot read the log %s: %v", l.name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return modules.Errorf("cannot read the log %s: %v", l.name, err)
	}
	line, err := bufio.NewReader(io.LimitReader(f, 1<<20)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return modules.Errorf("cannot read the log %s: %v", l.name, err)
	}
	sum := md5.Sum(line)
	l.size, l.header, l.exists = info.Size(), hex.EncodeToString(sum[:]), true
	switch {
	case l.status == "Disabled":
	case l.rotated():
		l.status = "Rotated"
	case l.size > l.published && l.published > 0:
		l.status = "Partial"
	case l.size > l.published:
		l.status = "Ready"
	case l.published > 0:
		l.status = "Published"
	default:
		l.status = "Enabled"
	}
	return nil
}

// rotated reports whether the file was replaced since parts of it were published.
func (l *guestLog) rotated() bool {
	return l.published > 0 && (l.size < l.published || l.header != l.publishedHeader)
}

// showLog returns a log in Trove's form. Without a store, nothing counts as published.
func (g *guest) showLog(ctx context.Context, l *guestLog) (map[string]any, error) {
	var s store
	if len(g.store) > 0 {
		var err error
		if s, err = g.openStore(ctx); err != nil {
			return nil, err
		}
	}
	if err := g.refreshLog(ctx, s, l); err != nil {
		return nil, err
	}
	container, prefix := "None", "None"
	if l.published > 0 {
		container, prefix = g.logContainer, g.logPrefix(l)
	}
	pending := l.size - l.published
	if l.status == "Rotated" {
		pending = l.size
	}
	return map[string]any{"name": l.name, "type": map[bool]string{true: "SYS", false: "USER"}[l.system], "status": l.status,
		"published": l.published, "pending": pending, "container": container, "prefix": prefix, "metafile": g.metafileName(l)}, nil
}

// discardLog removes the published parts of a log.
func (g *guest) discardLog(ctx context.Context, l *guestLog) error {
	s, err := g.openStore(ctx)
	if err != nil {
		return err
	}
	names, err := s.names(ctx, g.logContainer, g.logPrefix(l))
	if err != nil {
		return err
	}
	for _, name := range append(names, g.metafileName(l)) {
		if err := s.remove(ctx, g.logContainer, name); err != nil {
			return err
		}
	}
	l.published, l.publishedHeader, l.restored = 0, "", true
	return nil
}

// publishLog stores the new content of a log since the last time, in parts of whole lines.
func (g *guest) publishLog(ctx context.Context, l *guestLog) error {
	s, err := g.openStore(ctx)
	if err != nil {
		return err
	}
	if err := g.refreshLog(ctx, s, l); err != nil {
		return err
	}
	if l.rotated() {
		if err := g.discardLog(ctx, l); err != nil {
			return err
		}
	}
	if !l.exists {
		return modules.Errorf("Cannot publish log file '%s' as it does not exist.", l.file)
	}
	f, err := os.Open(g.c.Path(l.file))
	if err == nil {
		_, err = f.Seek(l.published, io.SeekStart)
	}
	if err != nil {
		return modules.Errorf("cannot read the log %s: %v", l.name, err)
	}
	defer f.Close()
	r := bufio.NewReader(io.LimitReader(f, l.size-l.published))
	var part bytes.Buffer
	lines := 0
	flush := func() error {
		if part.Len() == 0 {
			return nil
		}
		size := int64(part.Len())
		name := g.logPrefix(l) + "log-" + g.c.Now().UTC().Format("2006-01-02T15:04:05.000000") + "-" + strconv.FormatInt(l.published, 10)
		_, err := s.put(ctx, g.logContainer, name, &part, map[string]string{"lines": strconv.Itoa(lines)})
		if err != nil {
			return err
		}
		part.Reset()
		lines = 0
		l.published, l.publishedHeader = l.published+size, l.header
		return g.putMetafile(ctx, s, l)
	}
	for {
		line, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return modules.Errorf("cannot read the log %s: %v", l.name, err)
		}
		if part.Len() > 0 && int64(part.Len()+len(line)) > g.logLimit {
			if err := flush(); err != nil {
				return err
			}
		}
		part.Write(line)
		if len(line) > 0 && !errors.Is(err, bufio.ErrBufferFull) {
			lines++
		}
		if errors.Is(err, io.EOF) {
			return flush()
		}
	}
}

func (g *guest) putMetafile(ctx context.Context, s store, l *guestLog) error {
	b, err := json.Marshal(metafile{l.name, map[bool]string{true: "SYS", false: "USER"}[l.system], l.file, l.published, l.header})
	if err != nil {
		return err
	}
	_, err = s.put(ctx, g.logContainer, g.metafileName(l), bytes.NewReader(b), map[string]string{})
	return err
}

// timestamp formats a time for the results of modules.
func timestamp(t time.Time) string { return t.Format("2006-01-02 15:04:05.00") }
