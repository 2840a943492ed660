//go:build linux

package master_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store/sqlite"
)

// BenchmarkReturns measures what simultaneous returns of 10 KB from many minions cost the master, without the
// transport: the time and the processor time of each return. The requests are packed before the timer starts. The
// master writes the copies for Salt's tools after it has acknowledged a return.
func BenchmarkReturns(b *testing.B) {
	const minions = 256
	text := strings.Repeat("0123456789abcdef", 640)
	for _, kind := range []string{"memory", "sqlite", "salt-master"} {
		b.Run(kind, func(b *testing.B) {
			dir := b.TempDir()
			o := master.Options{Keys: master.KeyOptions{AutoAccept: true},
				Security: master.SecurityOptions{AuthRate: -1}, CacheDir: dir + "/cache",
				PKIDir: dir + "/pki"}
			if kind != "memory" {
				db, err := sqlite.Open(dir + "/jobs.sqlite")
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { db.Close() })
				o.Store = db
			}
			if kind == "salt-master" {
				o.Local = &master.Local{SockDir: dir + "/run"}
			}
			r := serve(b, o)
			all := make([]*minion, minions)
			for i := range all {
				all[i] = r.accepted(fmt.Sprintf("m%03d", i), 1)
			}
			packed := make([][]byte, minions)
			var used time.Duration
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += minions {
				b.StopTimer()
				jid, err := r.Publish(b.Context(), master.Job{Fun: "test.echo", Args: []any{"x"}, Tgt: "*"})
				if err != nil {
					b.Fatal(err)
				}
				for i, m := range all {
					e, _, err := m.requester.Pack(map[string]any{"cmd": "_return", "id": m.id, "jid": jid.JID, "fun": "test.echo", "fun_args": []any{"x"}, "return": text,
						"retcode": 0, "success": true}, time.Now())
					if err != nil {
						b.Fatal(err)
					}
					if packed[i], err = e.Marshal(); err != nil {
						b.Fatal(err)
					}
				}
				begun := processorTime()
				b.StartTimer()
				var wg sync.WaitGroup
				for _, body := range packed[:min(minions, b.N-n)] {
					wg.Go(func() {
						if r.Handle(context.Background(), body) == nil {
							b.Error("not acknowledged")
						}
					})
				}
				wg.Wait()
				used += processorTime() - begun
			}
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
