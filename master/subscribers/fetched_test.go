package subscribers

import (
	"testing"
	"time"
)

// TestAJobIsReadOnce: of the minions that fetch a job at one time one has it read from the store.
func TestAJobIsReadOnce(t *testing.T) {
	var c FetchCache
	now := time.Now()
	load, wait, read := c.Get("1", "a", now)
	if load != nil || wait != nil || read == nil {
		t.Fatal(load, wait)
	}
	if _, wait, other := c.Get("1", "b", now); wait == nil || other != nil {
		t.Fatal("two read it")
	}
	_, wait, _ = c.Get("1", "b", now)
	if _, _, other := c.Get("2", "b", now); other == nil {
		t.Fatal("another job waits")
	}
	c.Put(FetchedJob{JID: "1", At: now, Load: map[string]any{"jid": "1"},
		IDs: map[string]struct{}{"b": {}}})
	read()
	<-wait
	if load, _, _ := c.Get("1", "b", now); load["jid"] != "1" {
		t.Error(load)
	}
	if load, wait, read := c.Get("1", "c", now); load != nil || wait != nil || read == nil {
		t.Error("it is not looked for again", load, wait)
	}
}
