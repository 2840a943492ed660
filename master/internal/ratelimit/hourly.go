package ratelimit

import (
	"log/slog"
	"time"
)

// HourlyLog limits log lines about refused minions, which retry for as long as they run.
type HourlyLog struct{ said *Limiter }

// NewHourlyLog returns an HourlyLog.
func NewHourlyLog() *HourlyLog { return &HourlyLog{New(1./3600, 1)} }

// Level returns the level for a log line about a minion: level, or Debug if the same line was logged for the id
// within an hour.
func (h *HourlyLog) Level(id, what string, level slog.Level) slog.Level {
	if h.said.AllowName(id+"\x00"+what, time.Now()) {
		return level
	}
	return slog.LevelDebug
}
