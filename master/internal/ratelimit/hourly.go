package ratelimit

import (
	"log/slog"
	"net/netip"
	"time"
)

// HourlyLog limits log lines about refused minions, which retry for as long as they run.
type HourlyLog struct{ said *Limiter }

// NewHourlyLog returns an HourlyLog.
func NewHourlyLog() *HourlyLog { return &HourlyLog{New(1./3600, 1)} }

// Level returns the level for a log line about a minion: level, or Debug if the same line was logged for the id
// within an hour.
func (h *HourlyLog) Level(id, what string, level slog.Level) slog.Level {
	return h.levelOf(id+"\x00"+what, level)
}

// reasonFrom is a reason for which requests of an address are refused.
type reasonFrom struct {
	source netip.Prefix
	what   string
}

// LevelFrom is like Level for a request that does not name a minion. It counts by the address of the peer
// ("ip:port").
func (h *HourlyLog) LevelFrom(peer, what string, level slog.Level) slog.Level {
	return h.levelOf(reasonFrom{sourceOf(peer), what}, level)
}

func (h *HourlyLog) levelOf(key any, level slog.Level) slog.Level {
	if h.said.allow(key, time.Now()) {
		return level
	}
	return slog.LevelDebug
}
