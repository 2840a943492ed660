package update

import (
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/trustedmetadata"

	"github.com/brine-salt/brine/cmd/internal/repository"
)

// FuzzMetadata gives the client what a web server without the keys may put in the place of each file of a repository: it is refused, or it
// says what the owner of the keys has signed.
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

	const channel = "stable-" + testPlatform
	// The newest version of each role's file.
	files := map[string][]byte{}
	for _, role := range []string{metadata.ROOT, metadata.TIMESTAMP, metadata.SNAPSHOT, metadata.TARGETS, channel} {
		names, err := filepath.Glob(filepath.Join(repo.Dir, "metadata", "*"+role+".json"))
		must(err)
		if len(names) == 0 {
			f.Fatal("no file of the role ", role)
		}
		version := int64(-1)
		for _, name := range names {
			text, err := os.ReadFile(name)
			must(err)
			var m struct {
				Signed struct {
					Version int64 `json:"version"`
				} `json:"signed"`
			}
			must(json.Unmarshal(text, &m))
			if m.Signed.Version > version {
				version, files[role] = m.Signed.Version, text
			}
		}
		for target := range byte(5) {
			f.Add(target, files[role])
		}
	}
	f.Add(byte(4), []byte(`{"signed": {"_type": "targets", "version": 1e400, "targets": {"a": {"length": -1}}}, "signatures": [{"keyid": "", "sig": "00"}]}`))

	client := &Repository{}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		trusted, err := trustedmetadata.New(files[metadata.ROOT])
		if err != nil {
			t.Fatal(err)
		}
		trusted.RefTime = now
		steps := []struct {
			role string
			take func(data []byte) (any, error)
		}{
			{metadata.ROOT, func(data []byte) (any, error) { return signed(trusted.UpdateRoot(data)) }},
			{metadata.TIMESTAMP, func(data []byte) (any, error) { return signed(trusted.UpdateTimestamp(data)) }},
			{metadata.SNAPSHOT, func(data []byte) (any, error) { return signed(trusted.UpdateSnapshot(data, false)) }},
			{metadata.TARGETS, func(data []byte) (any, error) { return signed(trusted.UpdateTargets(data)) }},
			{channel, func(data []byte) (any, error) {
				return signed(trusted.UpdateDelegatedTargets(data, channel, metadata.TARGETS))
			}},
		}
		for i, step := range steps {
			if i < int(which)%len(steps) {
				if _, err := step.take(files[step.role]); i > 0 && err != nil {
					t.Fatal(step.role, err)
				}
				continue
			}
			got, err := step.take(data)
			if err != nil {
				break
			}
			if i == 0 {
				t.Fatalf("a new root without its keys was taken: %q", data)
			}
			if want := signedPart(t, files[step.role]); signedPart(t, mustJSON(t, map[string]any{"signed": got})) != want {
				t.Fatalf("%s: nobody signed %q", step.role, data)
			}
			break
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

// signed returns the part of metadata that is signed.
func signed[T metadata.Roles](m *metadata.Metadata[T], err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return m.Signed, nil
}

// signedPart returns that part of a file, with its keys in order.
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
