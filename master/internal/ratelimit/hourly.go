package ratelimit

import (
	"log/slog"
	"time"
)

// HourlyLog bounds log lines about minions that are refused: they try again for as long as they run.
type HourlyLog struct{ said *Limiter }

// NewHourlyLog returns an HourlyLog that has said nothing yet.
func NewHourlyLog() *HourlyLog { return &HourlyLog{New(1./3600, 1)} }

// Level returns the level of a log line about a minion: the given one, or Debug if the same was said of the id within
// an hour.
func (h *HourlyLog) Level(id, what string, level slog.Level) slog.Level {
	if h.said.AllowName(id+"\x00"+what, time.Now()) {
		return level
	}
	return slog.LevelDebug
}
