package update

import (
	"debug/elf"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/trustedmetadata"

	"github.com/brine-salt/brine/cmd/internal/repository"
)

// FuzzMetadata replaces files of a repository by data that a web server without the keys can send. The client must
// refuse it, or accept only what the owner of the keys has signed.
func FuzzMetadata(f *testing.F) {
	must := func(err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
	}
	keys, now := f.TempDir(), time.Now()
	for _, name := range []string{"root.1", "root.2", "root.3", "targets", "snapshot", "timestamp", "stable", "edge"} {
		must(repository.NewKey(filepath.Join(keys, name+".pem")))
	}
	repo := &repository.Repository{Dir: filepath.Join(f.TempDir(), "repo"), Keys: keys, Threshold: 2, Life: repository.DefaultLifetimes,
		Now: func() time.Time { return now }}
	must(repo.Init())
	program := filepath.Join(f.TempDir(), "program")
	must(os.WriteFile(program, fakeProgram(elf.EM_X86_64, "program"), 0o600))
	must(repo.Add("stable", "1.2.3", map[string]string{testPlatform: program}))

	const role, channel = "stable", "stable-" + testPlatform
	// the newest version of each role's file
	files := map[string][]byte{}
	for _, name := range []string{metadata.ROOT, metadata.TIMESTAMP, metadata.SNAPSHOT, metadata.TARGETS, role, channel} {
		names, err := filepath.Glob(filepath.Join(repo.Dir, "metadata", "*"+name+".json"))
		must(err)
		if len(names) == 0 {
			f.Fatal("no file of the role ", name)
		}
		version := int64(-1)
		for _, path := range names {
			text, err := os.ReadFile(path)
			must(err)
			var m struct {
				Signed struct {
					Version int64 `json:"version"`
				} `json:"signed"`
			}
			must(json.Unmarshal(text, &m))
			if m.Signed.Version > version {
				version, files[name] = m.Signed.Version, text
			}
		}
		for target := range byte(6) {
			f.Add(target, files[name])
		}
	}
	f.Add(byte(5), []byte(`{"signed": {"_type": "targets", "version": 1e400, "targets": {"a": {"length": -1}}}, "signatures": [{"keyid": "", "sig": "00"}]}`))

	type trust = trustedmetadata.TrustedMetadata
	steps := []struct {
		role string
		take func(t *trust, data []byte) (any, error)
	}{
		{metadata.ROOT, func(t *trust, data []byte) (any, error) { return signed(t.UpdateRoot(data)) }},
		{metadata.TIMESTAMP, func(t *trust, data []byte) (any, error) { return signed(t.UpdateTimestamp(data)) }},
		{metadata.SNAPSHOT, func(t *trust, data []byte) (any, error) { return signed(t.UpdateSnapshot(data, false)) }},
		{metadata.TARGETS, func(t *trust, data []byte) (any, error) { return signed(t.UpdateTargets(data)) }},
		{role, func(t *trust, data []byte) (any, error) {
			return signed(t.UpdateDelegatedTargets(data, role, metadata.TARGETS))
		}},
		{channel, func(t *trust, data []byte) (any, error) {
			return signed(t.UpdateDelegatedTargets(data, channel, role))
		}},
	}
	// what a client trusts before each step
	before := make([]trust, len(steps))
	first, err := trustedmetadata.New(files[metadata.ROOT])
	must(err)
	first.RefTime = now
	for i, step := range steps {
		before[i] = *first
		before[i].Targets = maps.Clone(first.Targets)
		if i > 0 { // there is no second root
			_, err := step.take(first, files[step.role])
			must(err)
		}
	}

	client := &Repository{}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		i := int(which) % len(steps)
		trusted := before[i]
		trusted.Targets = maps.Clone(trusted.Targets)
		if got, err := steps[i].take(&trusted, data); err == nil {
			role := steps[i].role
			if i == 0 {
				t.Fatalf("a new root without its keys was taken: %q", data)
			}
			if want := signedPart(t, files[role]); signedPart(t, mustJSON(t, map[string]any{"signed": got})) != want {
				t.Fatalf("%s: no key signed %q", role, data)
			}
		}
		for role, meta := range trusted.Targets {
			for name, file := range meta.Signed.Targets {
				_ = client.checkTarget(role, name, file)
			}
		}
		text := string(data[:min(len(data), 64)])
		if a, b := CompareVersions(text, "1.2.3"), CompareVersions("1.2.3", text); a != -b {
			t.Fatalf("%q against 1.2.3 is %d, and %d the other way round", text, a, b)
		}
	})
}

// signed returns the signed part of metadata.
func signed[T metadata.Roles](m *metadata.Metadata[T], err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return m.Signed, nil
}

// signedPart returns the signed part of a file, with sorted keys.
func signedPart(t *testing.T, text []byte) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return string(mustJSON(t, m["signed"]))
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
