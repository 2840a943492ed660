package modules_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/testkit/privatehost"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/interop/oracle"
	"github.com/brine-salt/brine/modules"
)

// answers is where stock's answers to the cases are kept: a line for each case, in a file named as that of the cases. `make answers`
// asks stock again. Those of cases that change the host have a directory of their own.
const (
	answers     = "testdata/stock/answers"
	hostAnswers = answers + "/host"
	hostCases   = "testdata/stock/host/*.yaml"

	// Cases whose stock needs libraries that Salt does not bring.
	clientAnswers = answers + "/clients"
	clients       = "testdata/stock/clients/*.yaml"
)

// TestReplay compares ours with the answers that stock gave, without stock: what programs said then is said again. Cases that
// change the host run as root, in a host of their own.
func TestReplay(t *testing.T) {
	scratch := t.TempDir()
	if err := os.CopyFS(scratch, os.DirFS("testdata/stock/root")); err != nil {
		t.Fatal(err)
	}
	oracle.Configure(t, scratch, "testdata/stock/minion.conf")
	dir := filepath.Join(scratch, "work")
	p := &replay{scratch: scratch, dir: dir, servers: &testserver.Servers{T: t, Replay: true}}
	p.runner = &oracle.Replayer{Real: &runcmd.Runner{}, Dir: dir, Servers: p.servers}
	p.env, p.newJob = ourMinion(scratch, oracle.LoadMinion(t, answers+"/minion.json", scratch), p.runner)
	if privatehost.Inside() {
		p.host = privatehost.New(t)
		p.host.Fresh(t)
		p.run(t, oracle.OpenBook(t, hostAnswers), keyed(loadCases(t, hostCases, dir), dir))
		p.host.Undo(t)
		return
	}
	p.run(t, oracle.OpenBook(t, answers), plainCases(t, dir))
	oracle.InHost(t, hostAnswers)
	oracle.LendDocker(t, p.servers)
	p.run(t, oracle.OpenBook(t, clientAnswers), keyed(loadCases(t, clients, dir), dir))
}

// replay is our side of the cases, without stock's.
type replay struct {
	scratch, dir string
	servers      *testserver.Servers
	runner       *oracle.Replayer
	env          *modules.Env
	newJob       func()
	host         *privatehost.Host // nil where cases leave the host alone
}

// run compares ours with the answers of a book.
func (p *replay) run(t *testing.T, book *oracle.Book, cases []stockCase) {
	t.Helper()
	r := modules.NewRegistry(stockModules()...)
	installed := book.Installed()
	match := oracle.Chosen()
	var tally oracle.Tally
	for _, c := range cases {
		book.Know(c.file, c.key)
		kept, ok := book.Find(c.file, c.key)
		if !match.MatchString(c.name) || !tally.Count(t, c.name, kept, ok) {
			continue
		}
		c.fill(p.servers)
		names := oracle.ReplayNames(t, p.scratch, p.servers.Texts()...)
		p.runner.Names = names
		passed := t.Run(c.name, func(t *testing.T) {
			if p.host != nil {
				p.host.Fresh(t)
				oracle.PlainHost(t)
				oracle.Install(t, installed, kept.Programs)
				t.Setenv("PATH", oracle.Programs(t, nil))
			} else {
				t.Setenv("PATH", oracle.Programs(t, kept.Programs))
			}
			p.runner.Give(t, kept)
			p.runner.Setup(t, c.setup, kept)
			modules.Default().Reset()
			p.newJob()
			theirs := outcomeOf(oracle.Unpack(kept.Stock, names).(map[string]any))
			if kept.Unchecked {
				c.check, theirs.Check = "", ""
			}
			ours := ourAnswer(t, r, p.env, c, p.dir)
			c.without(&ours)
			if c.file == "docker" {
				ours.mask()
			}
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
