package states_test

import (
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/interop/oracle"
)

// answers is where stock's answers to the cases are kept: a line for each case, in a file named as that of the cases. `make answers`
// asks stock again.
const answers = "testdata/stock/answers"

// TestReplay compares ours with the answers that stock gave, without stock: what programs said then is said again.
func TestReplay(t *testing.T) {
	scratch := newScratch(t)
	dir := filepath.Join(scratch, "work")
	names := oracle.ReplayNames(t, scratch)
	runner := &oracle.Replayer{Real: &runcmd.Runner{}, Dir: dir, Names: names}
	m := &minion{scratch: scratch, known: oracle.LoadMinion(t, answers+"/minion.json", scratch), runner: runner}
	book := oracle.OpenBook(t, answers)
	match := oracle.Chosen()
	var tally oracle.Tally
	for _, c := range loadStateCases(t, "testdata/stock/*.yaml", dir) {
		book.Know(c.file, c.key)
		kept, ok := book.Find(c.file, c.key)
		if !match.MatchString(c.name) || !tally.Count(t, c.name, kept, ok) {
			continue
		}
		passed := t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", oracle.Programs(t, kept.Programs))
			runner.Give(kept.Programs)
			ours := m.passes(t, c, dir, false, func() { oracle.Fresh(t, dir, c.setup) }, m.ours)
			c.judge(t, answersOf(oracle.Unpack(kept.Stock, names).(map[string]any)), ours)
		})
		if !passed {
			book.Suspect(c.file, kept)
		}
	}
	book.Save(t)
	tally.Report(t)
}
