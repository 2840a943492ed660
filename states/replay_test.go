package states_test

import (
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/testkit/privatehost"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/interop/oracle"
)

// answers is the directory of stock's recorded answers: one line per case, in a file with the name of the cases'
// file. `make answers` records them again. Cases that change the host have a separate directory.
const (
	answers     = "testdata/stock/answers"
	hostAnswers = answers + "/host"
	hostCases   = "testdata/stock/host/*.yaml"

	// Cases whose stock needs libraries that Salt does not bring.
	clientAnswers = answers + "/clients"
	clients       = "testdata/stock/clients/*.yaml"
)

// TestReplay compares our answers with the recorded ones of stock, so it needs no stock Salt; the recorded output
// of programs is played back. Cases that change the host run as root, in a private host.
func TestReplay(t *testing.T) {
	scratch := newScratch(t)
	p := &replay{dir: filepath.Join(scratch, "work"), servers: &testserver.Servers{T: t, Replay: true}}
	p.runner = &oracle.Replayer{Real: &runcmd.Runner{}, Dir: p.dir, Servers: p.servers}
	p.minion = &minion{scratch: scratch, known: oracle.LoadMinion(t, answers+"/minion.json", scratch), runner: p.runner}
	if privatehost.Inside() {
		p.host = privatehost.New(t)
		p.host.Fresh(t)
		p.run(t, hostAnswers, hostCases)
		p.host.Undo(t)
		return
	}
	p.run(t, answers, "testdata/stock/*.yaml")
	p.runTrees(t)
	oracle.InHost(t, hostAnswers)
	oracle.LendDocker(t, p.servers)
	p.run(t, clientAnswers, clients)
}

// replay is our side of the cases, without stock's.
type replay struct {
	*minion
	dir     string
	servers *testserver.Servers
	runner  *oracle.Replayer
	host    *privatehost.Host // nil where cases leave the host alone
}

// run compares ours with the kept answers of a directory to the cases of some files.
func (p *replay) run(t *testing.T, answers, pattern string) {
	t.Helper()
	book := oracle.OpenBook(t, answers)
	installed := book.Installed()
	match := oracle.Chosen()
	var tally oracle.Tally
	for _, c := range loadStateCases(t, pattern, p.dir) {
		book.Know(c.file, c.key)
		kept, ok := book.Find(c.file, c.key)
		if !match.MatchString(c.name) || !tally.Count(t, c.name, kept, ok) {
			continue
		}
		c.fill(p.servers)
		names := oracle.ReplayNames(t, p.scratch, p.servers.Texts()...)
		p.runner.Names = names
		passed := t.Run(c.name, func(t *testing.T) {
			path := oracle.Programs(t, kept.Programs)
			if p.host != nil {
				path = oracle.Programs(t, nil)
			}
			t.Setenv("PATH", path)
			p.runner.Give(t, kept)
			fresh := func() {
				if p.host != nil {
					p.host.Fresh(t)
					oracle.PlainHost(t)
					oracle.Install(t, installed, kept.Programs)
				}
				p.runner.Setup(t, c.setup, kept)
			}
			theirs := answersOf(oracle.Unpack(kept.Stock, names).(map[string]any))
			if kept.Unchecked {
				c.check = ""
				for pass, a := range theirs {
					a.Check = ""
					theirs[pass] = a
				}
			}
			ours := p.passes(t, c, p.dir, p.host != nil, fresh, p.ours)
			if c.file == "docker" {
				mask(ours)
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
