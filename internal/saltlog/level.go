package saltlog

import (
	"log/slog"
	"math"
	"strconv"
	"strings"
)

// Salt's levels in addition to slog's. LevelAll shows all records, LevelQuiet shows none.
const (
	LevelAll      = slog.Level(math.MinInt16)
	LevelGarbage  = slog.Level(-16)
	LevelTrace    = slog.Level(-8)
	LevelProfile  = slog.Level(-2)
	LevelCritical = slog.Level(12)
	LevelQuiet    = slog.Level(math.MaxInt16)
)

// LevelNames returns the names of the levels, from the most verbose to the quietest.
func LevelNames() []string {
	return []string{"all", "garbage", "trace", "debug", "profile", "info", "warning", "error", "critical", "quiet"}
}

// ParseLevel parses a level: one of Salt's names in any case, or a number of Python's. "" means the default, warning.
// For an unknown name it returns the level error, as Salt uses, and ok is false.
func ParseLevel(name string) (level slog.Level, ok bool) {
	switch strings.ToLower(name) {
	case "all":
		return LevelAll, true
	case "garbage":
		return LevelGarbage, true
	case "trace":
		return LevelTrace, true
	case "debug":
		return slog.LevelDebug, true
	case "profile":
		return LevelProfile, true
	case "info":
		return slog.LevelInfo, true
	case "warning", "":
		return slog.LevelWarn, true
	case "error":
		return slog.LevelError, true
	case "critical":
		return LevelCritical, true
	case "quiet":
		return LevelQuiet, true
	}
	if n, err := strconv.Atoi(name); err == nil {
		return fromPython(n), true
	}
	return slog.LevelError, false
}

// fromPython returns the level that shows the same records as number n in Python's logging.
func fromPython(n int) slog.Level {
	for _, l := range []slog.Level{LevelGarbage, LevelTrace, slog.LevelDebug, LevelProfile, slog.LevelInfo, slog.LevelWarn,
		slog.LevelError, LevelCritical} {
		if _, number := levelOf(l); n <= number {
			if n <= 0 {
				return LevelAll
			}
			return l
		}
	}
	return LevelQuiet
}

// levelOf returns the name and the number of a level in Python's log records.
func levelOf(l slog.Level) (name string, number int) {
	switch {
	case l >= LevelCritical:
		return "CRITICAL", 50
	case l >= slog.LevelError:
		return "ERROR", 40
	case l >= slog.LevelWarn:
		return "WARNING", 30
	case l >= slog.LevelInfo:
		return "INFO", 20
	case l >= LevelProfile:
		return "PROFILE", 15
	case l >= slog.LevelDebug:
		return "DEBUG", 10
	case l >= LevelTrace:
		return "TRACE", 5
	}
	return "GARBAGE", 1
}
