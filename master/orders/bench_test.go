package orders

import (
	"fmt"
	"testing"
	"time"
)

// manyIDs are the ids of ten thousand minions.
func manyIDs() []string {
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = fmt.Sprintf("minion-%05d.example.org", i)
	}
	return ids
}

// BenchmarkHeard is a storm of returns from minions for which nothing waits.
func BenchmarkHeard(b *testing.B) {
	ids := manyIDs()
	d := newDeliverer(&fakeWire{}, "")
	load := plain()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Heard(ids[i%len(ids)], load)
	}
}

// BenchmarkAnswers is an order for ten thousand minions that listen: each is expected, answers and is
// taken from the list by the turn, which has nothing to send.
func BenchmarkAnswers(b *testing.B) {
	ids := manyIDs()
	load := answerTo("")
	b.ReportAllocs()
	for b.Loop() {
		d := newDeliverer(&fakeWire{}, "")
		d.Expect(ids...)
		for _, id := range ids {
			d.Heard(id, load)
		}
		d.runTurn(b.Context(), time.Now())
	}
}

// BenchmarkTurn is a turn while ten thousand minions are awaited that are not to be probed yet, and
// ten thousand others have answered lately.
func BenchmarkTurn(b *testing.B) {
	d := newDeliverer(&fakeWire{}, "")
	ids := manyIDs()
	for _, id := range ids {
		d.Heard("other-"+id, plain())
	}
	now := time.Now()
	d.Expect(ids...)
	for range len(ids)/maxProbe + 1 {
		d.runTurn(b.Context(), now)
	}
	b.ReportAllocs()
	for b.Loop() {
		d.runTurn(b.Context(), now)
	}
}
