package ratelimit

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHourlyLog: a minion that is refused again and again is logged once an hour for each reason, and so is an address whose requests name no minion.
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
		from := func(peer, what string) {
			if h.LevelFrom(peer, what, slog.LevelInfo) == slog.LevelInfo {
				logged[peer[:strings.LastIndexByte(peer, ':')]+" "+what]++
			}
		}
		for port := range 36 {
			from(fmt.Sprintf("10.0.0.1:%d", port), "id")
			from(fmt.Sprintf("[2001:db8::%d]:1", port), "id") // one network
			time.Sleep(5 * time.Minute)
		}
		from("10.0.0.1:99", "request")
		from("10.0.0.2:1", "id")
		for key, want := range map[string]int{"a the token is used": 3, "a rejected": 1, "b rejected": 1,
			"10.0.0.1 id": 3, "[2001:db8::0] id": 1, "[2001:db8::12] id": 1, "[2001:db8::24] id": 1, "10.0.0.1 request": 1, "10.0.0.2 id": 1} {
			if logged[key] != want {
				t.Errorf("%s: logged %d times in three hours, want %d", key, logged[key], want)
			}
		}
	})
}
