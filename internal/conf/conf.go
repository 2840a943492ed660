// Package conf reads Salt's configuration files and computes the effective options, as salt/config/__init__.py does:
// defaults, the main file, default_include and include with Salt's two merge rules, then changes to paths, roots and
// ids.
//
// All options are in one table, options.yaml, with their types, defaults, whether they have an effect in brine, and a
// sentence of documentation. "make compat" generates the Go tables from it.
//
// Options keep their names and raw values, including unknown options and values of a wrong type, about which Salt
// only warns. The package reads files and, to guess an id, the host's name and addresses. It reads no flags, and the
// environment only through Options.Getenv. It writes only the minion_id file, and renames a broken _schedule.conf.
package conf

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/protocol/payload"
)

// A Config is an effective configuration.
type Config struct {
	// Path is the main file; it may be missing.
	Path string
	// Opts are all options: defaults, then files, then overrides, including unknown ones.
	Opts map[string]any
	// Order has, by option, the keys of its value in the order of the files, if it differs from the sorted order. Only
	// the order counts; the values are in Opts.
	Order payload.OrderedMap
	// Files are the files that were read, in order.
	Files []string
	// Sets has, for each of Files, the sorted names of the options that the file sets.
	Sets [][]string
	// Given are the options that files set.
	Given map[string]bool
	// Notes are messages that Salt logs while loading. The caller logs them once its log is set up.
	Notes []Note
}

// A Note is a message for the log.
type Note struct {
	Level slog.Level
	Text  string
	// Option is the option that the message is about, or "".
	Option string
}

func (c *Config) note(level slog.Level, format string, args ...any) {
	c.Notes = append(c.Notes, Note{Level: level, Text: fmt.Sprintf(format, args...)})
}

// An Error is about a configuration that cannot be used. Salt exits with code 1.
type Error struct {
	// Path is the file, or "" if no single file is the cause. Line is the line in it, or 0 if unknown.
	Path string
	Line int
	// Msg is Salt's message.
	Msg string
}

// Error returns "Error parsing configuration file: PATH - MSG", or MSG alone without a path.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Msg
	}
	return "Error parsing configuration file: " + e.Path + " - " + e.Msg
}

// String returns an option as text, or "" if it is not set or empty. Numbers and booleans have Python's spelling.
func (c *Config) String(key string) string {
	switch v := c.Opts[key].(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	case bool:
		if v {
			return "True"
		}
		return "False"
	case []any, map[string]any, map[any]any:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

// Int returns an option as a number. Numeric text counts as a number and true as 1. For other values it returns the
// option's default, or 0.
func (c *Config) Int(key string) int {
	if f, ok := number(c.Opts[key]); ok {
		return int(f)
	}
	if f, ok := number(c.fallback(key)); ok {
		return int(f)
	}
	return 0
}

// Float is like Int, but returns fractions too.
func (c *Config) Float(key string) float64 {
	if f, ok := number(c.Opts[key]); ok {
		return f
	}
	f, _ := number(c.fallback(key))
	return f
}

// Duration returns an option as a number of units, limited to the range of time.Duration.
func (c *Config) Duration(key string, unit time.Duration) time.Duration {
	d := c.Float(key) * float64(unit)
	if d > math.MaxInt64 {
		return math.MaxInt64
	}
	if d < math.MinInt64 {
		return math.MinInt64
	}
	return time.Duration(d)
}

// fallback returns the default of an option for the role.
func (c *Config) fallback(key string) any {
	role, _ := c.Opts["__role"].(string)
	return Default(role, key)
}

// Default returns the default of an option for a role, "minion" or "master", or the value that an unset option counts
// as. It returns nil if the table of options has neither.
func Default(role, name string) any {
	constants, all := minionDefaults[:], MinionDefaults
	if role == "master" {
		constants, all = masterDefaults[:], MasterDefaults
	}
	for _, table := range [][]fixed{constants, unsetDefaults[:]} {
		if i, found := slices.BinarySearchFunc(table, name,
			func(f fixed, name string) int { return strings.Compare(f.key, name) }); found {
			return fresh(table[i].value)
		}
	}
	return all()[name]
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v)
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil && !math.IsNaN(f)
	}
	return 0, false
}

// Bool returns the truth of an option by Python's rules, except that text like "no", "false", "off" and "0" is false.
func (c *Config) Bool(key string) bool {
	return Truth(c.Opts[key])
}

// Truth is like Bool for a value.
func Truth(v any) bool {
	if s, ok := v.(string); ok {
		switch strings.ToLower(strings.TrimSpace(s)) {
		case "", "false", "no", "off", "0", "none":
			return false
		}
		return true
	}
	return pytext.Truth(v)
}

// List returns an option as a list. A single value becomes a list of one; nil and empty text become nil.
func (c *Config) List(key string) []any {
	switch v := c.Opts[key].(type) {
	case nil:
		return nil
	case []any:
		return v
	case string:
		if v == "" {
			return nil
		}
		return []any{v}
	default:
		return []any{v}
	}
}

// Strings is like List with every element as text. Elements that are empty as text are left out.
func (c *Config) Strings(key string) []string {
	var out []string
	for _, v := range c.List(key) {
		if s := (&Config{Opts: map[string]any{"": v}}).String(""); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Map returns an option as a mapping with text keys, or nil if it is not a mapping.
func (c *Config) Map(key string) map[string]any {
	return textMap(c.Opts[key])
}

func textMap(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[pytext.Str(k)] = e
		}
		return m
	}
	return nil
}

// Get returns the option at a path with colons, or def if it is not set. An option whose name is the whole path takes
// precedence.
func (c *Config) Get(path string, def any) any {
	if v, ok := c.Opts[path]; ok {
		return v
	}
	var at any = c.Opts
	for step := range strings.SplitSeq(path, ":") {
		switch v := at.(type) {
		case map[string]any:
			e, ok := v[step]
			if !ok {
				return def
			}
			at = e
		case map[any]any:
			e, ok := lookup(v, step)
			if !ok {
				return def
			}
			at = e
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return def
			}
			at = v[i]
		default:
			return def
		}
	}
	return at
}

func lookup(m map[any]any, step string) (any, bool) {
	if e, ok := m[step]; ok {
		return e, true
	}
	if i, err := strconv.ParseInt(step, 10, 64); err == nil {
		e, ok := m[i]
		return e, ok
	}
	return nil, false
}

// IsMinionOption reports whether Salt's minion has an option with this name.
func IsMinionOption(name string) bool {
	_, ok := MinionDefaults()[name]
	return ok
}
