package ratelimit

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestHourlyLog: a minion that is refused again and again is logged once an hour for each reason.
func TestHourlyLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHourlyLog()
		logged := map[string]int{}
		ask := func(id, what string) {
			if h.Level(id, what, slog.LevelWarn) == slog.LevelWarn {
				logged[id+" "+what]++
			}
		}
		for range 36 { // a revoked minion asks every five minutes
			ask("a", "the token is used")
			time.Sleep(5 * time.Minute)
		}
		ask("a", "rejected")
		ask("b", "rejected")
		for key, want := range map[string]int{"a the token is used": 3, "a rejected": 1, "b rejected": 1} {
			if logged[key] != want {
				t.Errorf("%s: logged %d times in three hours, want %d", key, logged[key], want)
			}
		}
	})
}
