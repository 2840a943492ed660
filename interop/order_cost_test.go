//go:build bench

package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

// TestMeasureOrder limits the cost of keeping the order of keys in dictionaries. For a job's arguments and its
// return, on both sides, the additional time and memory compared with the same data without order may be at most a
// twentieth of those of the whole job. Both are measured in this process, one after the other, three times; the
// median counts.
func TestMeasureOrder(t *testing.T) {
	m := pair(t, nil)
	for _, c := range []struct {
		name string
		keys int
	}{{"100 bytes", 5}, {"1 KB", 40}, {"10 KB", 400}} {
		data := payload.OrderedMap{}
		for i := range c.keys { // not in the order of the names
			data = append(data, payload.Pair{Key: fmt.Sprintf("key%03d", i*7919%1000),
				Value: payload.OrderedMap{{Key: "z", Value: int64(i)}, {Key: "a", Value: "text"}}})
		}
		var time, memory []float64
		for range 3 {
			job := testing.Benchmark(func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					res, err := m.Run(context.Background(), master.Job{Fun: "test.echo", Args: []any{data}, Tgt: "one"})
					if err != nil || res["one"].Return == nil {
						b.Fatal(res, err)
					}
				}
			})
			var moreTime, moreMemory float64
			without := plainWay(data)
			for _, minion := range []bool{true, false} {
				with := orderedWay(data, minion)
				moreTime += float64(with.NsPerOp() - without.NsPerOp())
				moreMemory += float64(with.AllocedBytesPerOp() - without.AllocedBytesPerOp())
			}
			moreTime, moreMemory = max(0, moreTime), max(0, moreMemory)
			time = append(time, moreTime/float64(job.NsPerOp()))
			memory = append(memory, moreMemory/float64(job.AllocedBytesPerOp()))
			t.Logf("%s: a job takes %d us and %d bytes; order takes %.0f us and %.0f bytes of that", c.name, job.NsPerOp()/1000, job.AllocedBytesPerOp(),
				moreTime/1000, moreMemory)
		}
		slices.Sort(time)
		slices.Sort(memory)
		if time, memory := time[1], memory[1]; time > 0.05 || memory > 0.05 {
			t.Errorf("%s: order costs %.1f %% of the time and %.1f %% of the memory of a job", c.name, 100*time, 100*memory)
		}
	}
}

// orderedWay measures the work of one side with data that keeps its order. The minion reads the data, passes objects
// to the function, and packs the function's result as it is. The master reads the return and stores it, together with
// plain data.
func orderedWay(data payload.OrderedMap, minion bool) testing.BenchmarkResult {
	return oneWay(data, payload.UnmarshalOrdered, func(v any) any {
		if minion {
			return pyobj.From(v)
		}
		if payload.Plain(v) == nil {
			return errors.New("no plain data")
		}
		return v
	})
}

// plainWay measures the same work without order.
func plainWay(data payload.OrderedMap) testing.BenchmarkResult {
	return oneWay(data, payload.UnmarshalLimits, func(v any) any { return v })
}

func oneWay(data payload.OrderedMap, read func([]byte, payload.Limits) (any, error),
	use func(any) any) testing.BenchmarkResult {
	packed, err := payload.Marshal(data)
	return testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v, failed := read(packed, payload.Limits{})
			if err != nil || failed != nil {
				b.Fatal(err, failed)
			}
			if _, err := payload.Marshal(use(v)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
