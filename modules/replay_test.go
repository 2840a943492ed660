package modules_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/interop/oracle"
	"github.com/brine-salt/brine/modules"
)

// answers is where stock's answers to the cases are kept: a line for each case, in a file named as that of the cases. `make answers`
// asks stock again.
const answers = "testdata/stock/answers"

// TestReplay compares ours with the answers that stock gave, without stock: what programs said then is said again.
func TestReplay(t *testing.T) {
	scratch := t.TempDir()
	if err := os.CopyFS(scratch, os.DirFS("testdata/stock/root")); err != nil {
		t.Fatal(err)
	}
	oracle.Configure(t, scratch, "testdata/stock/minion.conf")
	dir := filepath.Join(scratch, "work")
	names := oracle.ReplayNames(t, scratch)
	runner := &oracle.Replayer{Real: &runcmd.Runner{}, Dir: dir, Names: names}
	e, newJob := ourMinion(scratch, oracle.LoadMinion(t, answers+"/minion.json", scratch), runner)
	r := modules.NewRegistry(stockModules()...)
	book := oracle.OpenBook(t, answers)
	match := oracle.Chosen()
	var tally oracle.Tally
	for _, c := range plainCases(t, dir) {
		book.Know(c.file, c.key)
		kept, ok := book.Find(c.file, c.key)
		if !match.MatchString(c.name) || !tally.Count(t, c.name, kept, ok) {
			continue
		}
		passed := t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", oracle.Programs(t, kept.Programs))
			runner.Give(kept.Programs)
			freshDir(t, dir, c.setup)
			newJob()
			ours := ourAnswer(t, r, e, c, dir)
			c.without(&ours)
			theirs := outcomeOf(oracle.Unpack(kept.Stock, names).(map[string]any))
			if c.typeOnly && theirs.ErrorType == "" {
				ours.Value = kind(ours.Value)
			}
			c.judge(t, theirs, ours)
		})
		if !passed {
			book.Suspect(c.file, kept)
		}
	}
	book.Save(t)
	tally.Report(t)
}

// plainCases are those that leave the host alone, with the keys of their answers.
func plainCases(t *testing.T, dir string) []stockCase {
	t.Helper()
	cases := loadCases(t, "testdata/stock/*.yaml", dir)
	random := randomCases(dir)
	for i := range random {
		random[i].file = "random_files"
	}
	return keyed(append(cases, random...), dir)
}
