package minion

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/minion/journal"
	"github.com/brine-salt/brine/minion/spool"
	"github.com/brine-salt/brine/protocol"
)

// BenchmarkPromises is what the disk costs per job: the journal's record and the spooled return.
func BenchmarkPromises(b *testing.B) {
	dir := b.TempDir()
	j, err := journal.Open(journal.Options{Path: filepath.Join(dir, "j")})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	s, err := spool.Open(spool.Options{Dir: filepath.Join(dir, "s")})
	if err != nil {
		b.Fatal(err)
	}
	var clock protocol.JIDClock
	b.ReportAllocs()
	for b.Loop() {
		jid := string(clock.Next(time.Now()))
		if _, err := j.Begin(journal.Entry{JID: jid, Job: map[string]any{"fun": "test.ping", "arg": []any{}}}, true); err != nil {
			b.Fatal(err)
		}
		it, err := s.Put("m", jid, map[string]any{"return": true, "jid": jid})
		if err != nil {
			b.Fatal(err)
		}
		if err := j.End(jid); err != nil {
			b.Fatal(err)
		}
		s.Done(it)
	}
}

// BenchmarkSettings is what reading the options costs, which happens at every start and reload.
func BenchmarkSettings(b *testing.B) {
	opts := map[string]any{"id": "alpha", "master": []any{"a", "b:1", "[::1]:2"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newSettings(opts, nil); err != nil {
			b.Fatal(err)
		}
	}
}
