package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/brine-salt/brine/internal/signed"
	"github.com/brine-salt/brine/internal/testkit/prereq"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// fileKey returns a signer with a key in a file without a password.
func fileKey(t *testing.T) (*signer, minisign.PrivateKey) {
	t.Helper()
	_, priv, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := priv.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	s, err := openSigner(write(t, t.TempDir()+"/key", string(text)), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return s, priv
}

// agentKey returns a signer with a key in an ssh agent.
func agentKey(t *testing.T) *signer {
	t.Helper()
	pub, raw, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: raw}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(ring, c)
		}
	}()
	sshKey, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_AUTH_SOCK", dir+"/s")
	s, err := openSigner("", "", write(t, dir+"/id.pub", string(ssh.MarshalAuthorizedKey(sshKey))))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPassword opens a key with its password. Minisign's key derivation takes a GiB of memory and several seconds;
// make release-test runs this test.
func TestPassword(t *testing.T) {
	if os.Getenv("BRINE_RELEASE") != "full" {
		t.Skip("make release-test runs it")
	}
	want, priv := fileKey(t)
	text, err := minisign.EncryptKey("geheim", priv)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s, err := openSigner(write(t, dir+"/key", string(text)), write(t, dir+"/password", "geheim\n"), "")
	if err != nil || s.id() != want.id() {
		t.Errorf("%v %v", s, err)
	}
	if _, err := openSigner(dir+"/key", "", ""); err == nil || !strings.Contains(err.Error(), "it has a password, and there is no -password-file") {
		t.Errorf("without its password: %v", err)
	}
}

// TestMinisign: minisign itself accepts our signatures, made with a key of its own, as docs/release.md says. make
// release-test runs this test, because of the memory that minisign needs.
func TestMinisign(t *testing.T) {
	if os.Getenv("BRINE_RELEASE") != "full" {
		t.Skip("make release-test runs it")
	}
	tool, err := exec.LookPath("minisign")
	if err != nil {
		prereq.Missing(t, "minisign")
	}
	dir := t.TempDir()
	minisign := func(input string, args ...string) error {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("minisign %v: %w\n%s", args, err, out)
		}
		return err
	}
	if err := minisign("geheim\ngeheim\n", "-G", "-s", "release.key", "-p", "release.pub"); err != nil {
		t.Fatal(err)
	}
	s, err := openSigner(dir+"/release.key", write(t, dir+"/password", "geheim\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := signed.ReadKeys(dir + "/release.pub")
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := write(t, dir+"/ours.deb", "content"), write(t, dir+"/theirs.deb", "content")
	if err := s.signFile(ours, 1700000000); err != nil {
		t.Fatal(err)
	}
	if err := minisign("", "-V", "-p", "release.pub", "-m", "ours.deb"); err != nil {
		t.Error(err)
	}
	if err := minisign("geheim\n", "-S", "-s", "release.key", "-m", "theirs.deb"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := signed.Verify(theirs, theirs+signed.Suffix, keys); err != nil {
		t.Error(err)
	}
	write(t, ours, "Content")
	if err := minisign("", "-V", "-p", "release.pub", "-m", "ours.deb"); err == nil {
		t.Error("minisign verifies a changed file")
	}
}

func TestBadKeys(t *testing.T) {
	dir := t.TempDir()
	for what, args := range map[string][2]string{"no key": {}, "two keys": {"a", "b"}, "a missing file": {dir + "/none"},
		"a damaged key": {write(t, dir+"/bad", "RWQ")}, "no public key": {"", write(t, dir+"/bad.pub", "ssh-rsa x")}} {
		if _, err := openSigner(args[0], "", args[1]); err == nil || !strings.HasPrefix(err.Error(), "cannot ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSign: the minion verifies the signatures of each kind of key, and signing twice results in the same bytes.
func TestSign(t *testing.T) {
	file, _ := fileKey(t)
	for kind, s := range map[string]*signer{"file": file, "agent": agentKey(t)} {
		dir := t.TempDir()
		name := write(t, dir+"/brine.deb", "content")
		// The command ends with the key, as hosts pin it.
		says, pinned, _ := strings.Cut(done("bin/release/1.2.3", s), "\n")
		keys, err := signed.ReadKeys(write(t, dir+"/keys", pinned))
		if err != nil || says != "bin/release/1.2.3 is signed with the key" {
			t.Fatal(says, err)
		}
		if err := s.signFile(name, 1700000000); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		first, err := os.ReadFile(name + signed.Suffix)
		if err != nil {
			t.Fatal(err)
		}
		key, comment, err := signed.Verify(name, name+signed.Suffix, keys)
		if err != nil || key.ID() != s.id() || comment != "timestamp:1700000000\tfile:brine.deb\thashed" {
			t.Errorf("%s: %s %q %v", kind, key.ID(), comment, err)
		}
		if err := s.signFile(name, 1700000000); err != nil {
			t.Fatal(err)
		}
		if second, err := os.ReadFile(name + signed.Suffix); err != nil || string(second) != string(first) {
			t.Errorf("%s: the second signature is another one (%v)", kind, err)
		}
	}
}

// TestArchives: archives of the same programs in two directories are equal.
func TestArchives(t *testing.T) {
	t.Chdir("../../..")
	programs, packages := t.TempDir(), t.TempDir()
	write(t, programs+"/linux-amd64/brine-minion", "one")
	write(t, programs+"/windows-amd64/brine-minion.exe", "two")
	write(t, packages+"/out/brine.deb", "three")
	for _, p := range []string{"minion", "master", "update", "heat-minion", "trove-minion"} {
		write(t, packages+"/files/"+p+"/NOTICES", "licences of "+p)
	}
	s, _ := fileKey(t)
	var before map[string]string
	for range 2 {
		r := release{version: "1.2.3", programs: programs, packages: packages, out: t.TempDir() + "/out", epoch: 1700000000}
		if err := os.Mkdir(r.out, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, step := range []func() error{r.notices, r.changes, r.archives, r.copyPackages, func() error { return r.sign(s) }} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		all := map[string]string{}
		names, _ := filepath.Glob(r.out + "/*")
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(name)] = string(b)
		}
		for _, name := range []string{"brine-1.2.3-linux-amd64.tar.gz", "brine-1.2.3-windows-amd64.zip", "brine.deb", "NOTICES", "CHANGES.md", "SHA256SUMS"} {
			if all[name] == "" || all[name+signed.Suffix] == "" {
				t.Errorf("there is no %s, or no signature of it", name)
			}
		}
		if n := strings.Count(all["SHA256SUMS"], "\n"); n != 5 {
			t.Errorf("there are %d sums:\n%s", n, all["SHA256SUMS"])
		}
		for name, text := range before {
			if all[name] != text {
				t.Errorf("%s has other bytes the second time", name)
			}
		}
		before = all
	}
}

func TestSection(t *testing.T) {
	const text = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 1.2.0 (2026)\n\n- One.\n\n## 1.2\n\n- Old.\n"
	for version, want := range map[string]string{"1.2.0": "# brine 1.2.0\n\n- One.\n", "1.2": "# brine 1.2\n\n- Old.\n", "9.0.0": "# brine 9.0.0\n\n- New.\n"} {
		if got, err := sectionOf(text, version, true); err != nil || got != want {
			t.Errorf("%s: %q %v", version, got, err)
		}
	}
	if got, err := sectionOf(text, "1.0.0", false); err == nil {
		t.Errorf("no changes are %q", got)
	}
}

// TestOwnHash: the hash of brine as a component, which differs in every directory, is removed; other hashes remain.
func TestOwnHash(t *testing.T) {
	list := `{"bomFormat": "CycloneDX", "components": [
		{"name": "github.com/brine-salt/brine", "version": "v1", "hashes": [{"content": "00"}]},
		{"name": "github.com/coder/websocket", "purl": "a?b&c", "hashes": [{"content": "01"}]}]}`
	got, err := withoutOwnHash([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	var have, want any
	err = errors.Join(json.Unmarshal(got, &have),
		json.Unmarshal([]byte(strings.Replace(list, `, "hashes": [{"content": "00"}]`, "", 1)), &want))
	if d := cmp.Diff(want, have); d != "" || err != nil {
		t.Error(d, err)
	}
	for _, bad := range []string{"", "[]", "{}"} {
		if got, err := withoutOwnHash([]byte(bad)); err == nil {
			t.Errorf("%q gives %s", bad, got)
		}
	}
}

// TestNothingToPack: an empty directory is an error that names it.
func TestNothingToPack(t *testing.T) {
	dir := t.TempDir()
	r := release{version: "1.2.3", programs: dir, packages: dir, out: dir}
	for want, step := range map[string]func() error{
		"cannot pack the programs: there are none in " + dir:          r.archives,
		"cannot copy the packages: there are none in " + dir + "/out": r.copyPackages,
	} {
		if err := step(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRefused: a refused release leaves no files.
func TestRefused(t *testing.T) {
	t.Chdir("../../..")
	s, _ := fileKey(t)
	dir := t.TempDir()
	for what, r := range map[string]release{
		"a version that is none": {version: "1.2", programs: dir, packages: dir, out: dir + "/a"},
		"no directories":         {version: "1.2.3", out: dir + "/b"},
		"no packages":            {version: "1.2.3", programs: dir, packages: dir, out: dir + "/c"},
		"a release that exists":  {version: "1.2.3", programs: dir, packages: dir, out: dir},
	} {
		if err := r.make(s); err == nil || !strings.HasPrefix(err.Error(), "cannot ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 0 {
		t.Errorf("there are %v", left)
	}
}
