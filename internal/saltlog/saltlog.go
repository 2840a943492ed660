// Package saltlog writes log records in Salt's formats to Salt's targets. It is a slog.Handler that implements
// salt/_logging (impl.py, handlers.py). Console and file have their own levels and %-style formats. The file is a
// path, which is reopened after a rename, or the address of a syslog daemon.
//
// The logger name of a record is its attribute "logger". Without one it is derived from the package that logged:
// minion/grains is salt.minion.grains. The attributes jid and minion_id set the keys of these names and are not shown
// elsewhere. All other attributes follow the message as key=value.
package saltlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sink is a target for lines.
type sink struct {
	level  slog.Level
	format *formatter
	// write receives a whole line without its end. It must not block for long.
	write func(level slog.Level, line []byte) error
	close func() error
}

// setup is the current configuration. Reconfigure replaces it as a whole.
type setup struct {
	lowest   slog.Level
	granular map[string]slog.Level
	minion   string
	name     string
	sinks    []*sink
}

func (s *setup) add(k *sink) {
	s.sinks = append(s.sinks, k)
	s.lowest = min(s.lowest, k.level)
}

func (s *setup) close() error {
	var errs []error
	for _, k := range s.sinks {
		if k.close != nil {
			errs = append(errs, k.close())
		}
	}
	return errors.Join(errs...)
}

// Log is an open log.
type Log struct {
	current atomic.Pointer[setup]
	dropped atomic.Int64
	mu      sync.Mutex // held during configuration and while a line is written
	now     func() time.Time
}

// New opens the log. It returns an error that names the file if that cannot be opened.
func New(o Options) (*Log, error) {
	l := &Log{now: o.Now}
	if l.now == nil {
		l.now = time.Now
	}
	if err := l.Reconfigure(o); err != nil {
		return nil, err
	}
	return l, nil
}

// Reconfigure changes the configuration of a log. Existing loggers use the new one. If the file cannot be opened, the
// console is reconfigured, there is no file, and Reconfigure returns the error. An unknown level counts as error, and
// a warning is logged.
func (l *Log) Reconfigure(o Options) error {
	if o.Pid == 0 {
		o.Pid = os.Getpid()
	}
	next := &setup{lowest: LevelQuiet, minion: o.MinionID, name: o.Name, granular: map[string]slog.Level{}}
	var unknown []string
	level := func(name string) slog.Level {
		v, ok := ParseLevel(name)
		if !ok {
			unknown = append(unknown, name)
		}
		return v
	}
	if w := o.Console; w != nil {
		next.add(&sink{level: level(o.ConsoleLevel), format: newFormatter(or(o.ConsoleFormat, defaultConsole), or(o.ConsoleDate, defaultConsoleDate), o),
			write: func(_ slog.Level, line []byte) error {
				_, err := w.Write(append(line, '\n'))
				return err
			}})
	}
	var err error
	if fileLevel := level(o.FileLevel); o.File != "" && fileLevel < LevelQuiet {
		k := &sink{level: fileLevel, format: newFormatter(or(o.FileFormat, defaultFile), or(o.FileDate, defaultFileDate), o)}
		if err = openTarget(k, o); err == nil {
			next.add(k)
		}
	}
	for name, v := range o.Granular {
		// "all" is Python's NOTSET: the logger does not have its own level.
		if g := level(fmt.Sprint(v)); g != LevelAll {
			next.granular[name] = g
		}
	}
	l.mu.Lock()
	old := l.current.Swap(next)
	l.mu.Unlock()
	if old != nil {
		err = errors.Join(err, old.close())
	}
	for _, name := range unknown {
		l.Logger().Warn("Could not translate the logging level string '" + name + "' into an actual logging level integer. " +
			"Returning 'logging.ERROR'.")
	}
	return err
}

// Close closes the file. Later records are lost.
func (l *Log) Close() error {
	l.mu.Lock()
	old := l.current.Swap(&setup{lowest: LevelQuiet})
	l.mu.Unlock()
	return old.close()
}

// Dropped returns the number of lines that could not be written.
func (l *Log) Dropped() int64 { return l.dropped.Load() }

// Logger returns a slog.Logger that writes to the log.
func (l *Log) Logger() *slog.Logger { return slog.New(handler{log: l}) }

// handler holds the attributes of one logger.
type handler struct {
	log    *Log
	logger string
	jid    string
	minion string
	prefix string // prefix of attribute names: the groups
	suffix string // the attributes so far, in the form after the message
}

var _ slog.Handler = handler{}

// Enabled reports whether any target shows the level.
func (h handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.log.current.Load().lowest
}

// WithAttrs returns a handler that adds attributes to all records.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.add(a)
	}
	return h
}

// WithGroup returns a handler that adds a prefix to the names of later attributes.
func (h handler) WithGroup(name string) slog.Handler {
	if name != "" {
		h.prefix += name + "."
	}
	return h
}

func (h *handler) add(a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		before := h.prefix
		if a.Key != "" {
			h.prefix += a.Key + "."
		}
		for _, g := range v.Group() {
			h.add(g)
		}
		h.prefix = before
		return
	}
	if a.Key == "" {
		return
	}
	text := attrText(v)
	switch h.prefix + a.Key {
	case "logger":
		h.logger = text
	case "jid":
		h.jid = text
	case "minion_id":
		h.minion = text
	default:
		// Quote values so that the record stays on one line and the end of each value is visible.
		if text == "" || strings.ContainsAny(text, " \t\r\n\"=") {
			text = strconv.Quote(text)
		}
		h.suffix += " " + h.prefix + a.Key + "=" + text
	}
}

func attrText(v slog.Value) string {
	switch v.Kind() {
	case slog.KindTime:
		return v.Time().Format(time.RFC3339Nano)
	case slog.KindAny:
		if err, ok := v.Any().(error); ok && err != nil {
			return err.Error()
		}
		return fmt.Sprint(v.Any())
	}
	return v.String()
}

// Handle writes a record to every sink whose level includes it.
func (h handler) Handle(_ context.Context, r slog.Record) error {
	s := h.log.current.Load()
	r.Attrs(func(a slog.Attr) bool {
		h.add(a)
		return true
	})
	rec := record{time: r.Time, level: r.Level, message: r.Message + h.suffix, logger: h.logger, jid: h.jid, minion: or(h.minion, s.minion)}
	if rec.time.IsZero() {
		rec.time = h.log.now()
	}
	if r.PC != 0 {
		rec.frame, _ = runtime.CallersFrames([]uintptr{r.PC}).Next()
	}
	if rec.logger == "" {
		rec.logger = loggerOf(rec.frame.Function, s.name)
	}
	if r.Level < granularLevel(s.granular, rec.logger) {
		return nil
	}
	var errs []error
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	// Use the current sinks: those above may be closed by now.
	for _, k := range h.log.current.Load().sinks {
		if r.Level < k.level || k.level >= LevelQuiet {
			continue
		}
		if err := k.write(r.Level, k.format.line(&rec)); err != nil {
			h.log.dropped.Add(1)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// granularLevel returns the minimum level of a logger: its own, or that of the nearest logger above it.
func granularLevel(levels map[string]slog.Level, logger string) slog.Level {
	for len(levels) > 0 {
		if l, ok := levels[logger]; ok {
			return l
		}
		i := strings.LastIndexByte(logger, '.')
		if i < 0 {
			break
		}
		logger = logger[:i]
	}
	return LevelAll
}

// module is the path of the Go module whose packages have their own logger names.
const module = "github.com/brine-salt/brine/"

// loggerOf returns the logger name for a function: "salt" and the path of its package below the module. Programs and
// functions of other modules have the name other.
func loggerOf(function, other string) string {
	rest, ok := strings.CutPrefix(function, module)
	if !ok || strings.HasPrefix(rest, "cmd/") {
		return or(other, "salt")
	}
	dir, last := "", rest
	if i := strings.LastIndexByte(rest, '/'); i >= 0 {
		dir, last = rest[:i+1], rest[i+1:]
	}
	pkg, _, _ := strings.Cut(last, ".")
	return "salt." + strings.ReplaceAll(strings.TrimPrefix(dir+pkg, "internal/"), "/", ".")
}
