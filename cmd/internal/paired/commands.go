package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/internal/testkit/benchtree"
)

// A command is measured with both programs.
type command struct {
	name, what string
	setUp      func(ctx context.Context, s *site) (run, error)
}

var commands = []command{
	{"call", "salt-call --local test.ping", local("True", "test.ping")},
	{"grains", "salt-call --local grains.items", local("os_family:", "grains.items")},
	{"files200", "salt-call --local state.apply, 200 unchanged files",
		local("Succeeded: 200\n", "state.apply", "bench.files200")},
	{"files2000", "salt-call --local state.apply, 2,000 unchanged files",
		local("Succeeded: 2000\n", "state.apply", "bench.files2000")},
	{"formula30", "salt-call --local state.apply, a formula of 30 templates",
		local("Succeeded: 120\n", "state.apply", "bench.formula")},
	{"fetch100MB", "salt-call cp.get_file, 100 MB from our master",
		fetch("fetched/big", "cp.get_file", "salt://bench/big")},
	{"fetch200", "salt-call state.apply, 200 files from our master",
		fetch("Succeeded: 200 (changed=200)\n", "state.apply", "bench.fetch")},
	{"minions1000", "salt '*' test.ping, 1,000 minions", pingAll},
	{"keys1000", "salt-key -L, 1,000 keys", listKeys},
}

const (
	bigFile   = 100_000_000
	manyFiles = 200
	crowd     = 1000
)

// writeTree writes the file tree of all sites.
func writeTree(srv string) error {
	if err := benchtree.Write(srv); err != nil {
		return err
	}
	many := filepath.Join(srv, "bench", "many")
	if err := os.MkdirAll(many, 0o755); err != nil {
		return err
	}
	for i := range manyFiles {
		file, text := filepath.Join(many, fmt.Sprint(i)), fmt.Sprintf("file %d\n", i)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	state := fmt.Sprintf(`{%% for i in range(%d) %%}
{{ opts.root_dir }}/fetched/{{ i }}:
  file.managed: [{source: 'salt://bench/many/{{ i }}'}, {makedirs: True}]
{%% endfor %%}
`, manyFiles)
	err := os.WriteFile(filepath.Join(srv, "bench", "fetch.sls"), []byte(state), 0o600)
	if err != nil {
		return err
	}
	big, err := os.Create(filepath.Join(srv, "bench", "big"))
	if err != nil {
		return err
	}
	defer big.Close()
	_, err = io.CopyN(big, rand.Reader, bigFile)
	return err
}

// local returns the set-up of a call without a master.
func local(want string, args ...string) func(context.Context, *site) (run, error) {
	return func(_ context.Context, s *site) (run, error) {
		err := s.writeMinion(fmt.Sprintf("file_client: local\nfile_roots: {base: [%s]}", s.srv))
		line := append([]string{s.minion(), "call", "-c", s.config(), "--local"}, args...)
		return run{args: line, home: s.dir, want: want, times: 1}, err
	}
}

// fetch returns the set-up of a call that fetches files which the minion does not have.
func fetch(want string, args ...string) func(context.Context, *site) (run, error) {
	return func(ctx context.Context, s *site) (run, error) {
		master, err := s.startMaster(ctx)
		if err != nil {
			return run{}, err
		}
		err = s.writeMinion(fmt.Sprintf("master: 127.0.0.1\nmaster_port: %d", s.reply))
		line := append([]string{s.minion(), "call", "-c", s.config()}, args...)
		fetched := filepath.Join(s.minionDir(), "fetched")
		if args[0] == "cp.get_file" {
			line = append(line, filepath.Join(fetched, "big"), "makedirs=True")
		}
		before := func() error {
			if err := os.RemoveAll(filepath.Join(s.minionDir(), "cache", "files")); err != nil {
				return err
			}
			return os.RemoveAll(fetched)
		}
		return run{args: line, home: s.dir, before: before, daemons: []*daemon{master},
			want: want, times: 1}, err
	}
}

// pingAll prepares a job to simulated minions.
func pingAll(ctx context.Context, s *site) (run, error) {
	master, err := s.startMaster(ctx)
	if err != nil {
		return run{}, err
	}
	err = s.startSwarm(ctx, crowd)
	line := []string{s.master(), "salt", "-c", s.config(), "-t", "60", "*", "test.ping"}
	return run{args: line, home: s.dir, daemons: []*daemon{master}, want: "True",
		times: crowd}, err
}

// listKeys prepares a directory of accepted keys.
func listKeys(_ context.Context, s *site) (run, error) {
	if err := s.writeMaster(); err != nil {
		return run{}, err
	}
	key, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		return run{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return run{}, err
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	for i := range crowd {
		if err := s.write(fmt.Sprintf("pki/minions/web-%d", i), text); err != nil {
			return run{}, err
		}
	}
	line := []string{s.master(), "key", "-c", s.config(), "-L"}
	return run{args: line, home: s.dir, want: "web-", times: crowd}, nil
}
