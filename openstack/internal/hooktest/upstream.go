package hooktest

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testsalt"
)

// Version is the release of heat-agents that is the reference. Only its source archive has the hooks.
const Version = "13.0.0"

// Upstream is an unpacked source archive of heat-agents.
type Upstream struct{ dir, salt string }

// Fetch unpacks the source archive of heat-agents, which the Python index has, into a temporary directory. The archive is kept in the
// user's cache for the next time.
func Fetch(t testing.TB) Upstream {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(cache, "brine", "heat-agents")
	archive := filepath.Join(kept, "heat_agents-"+Version+".tar.gz")
	if _, err := os.Stat(archive); err != nil {
		cmd := exec.Command("/usr/bin/python3", "-m", "pip", "download", "-q", "--no-binary", ":all:", "--no-deps", "-d", kept, "heat-agents=="+Version)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cannot fetch the source archive of heat-agents: %v\n%s", err, out)
		}
	}
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", archive, "-C", dir, "--strip-components=1").CombinedOutput(); err != nil {
		t.Fatalf("cannot unpack %s: %v\n%s", archive, err, out)
	}
	return Upstream{dir: dir, salt: testsalt.Python(t)}
}

// Side runs a case as an image with heat-agents does: 55-heat-config finds the deployment in the metadata, runs the hook of its group,
// and hands what the hook answered to heat-config-notify.
func (u Upstream) Side(t *testing.T, c *Case) map[string]any {
	t.Helper()
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	hooks, err := filepath.Glob(filepath.Join(u.dir, "heat-config-*", "install.d", "hook-*.py"))
	if err != nil || len(hooks) == 0 {
		t.Fatalf("heat-agents has no hooks: %v", err)
	}
	for _, hook := range hooks {
		group, python := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(hook), "hook-"), ".py"), "/usr/bin/python3"
		if group == "salt" {
			python = u.salt
		}
		write("/usr/libexec/heat-config/hooks/"+group, "#!/bin/sh\nexec "+python+" "+hook+"\n", 0o755)
	}
	write("/usr/local/bin/heat-config-notify", "#!/bin/sh\ncat >/dev/null\n", 0o755)
	write("/run/heat-config/heat-config", "["+string(c.JSON(t))+"]", 0o600)
	steps := []string{"heat-config/os-refresh-config/configure.d/55-heat-config"}
	if c.Group() == "docker-compose" {
		steps = append([]string{"heat-config-docker-compose/os-refresh-config/configure.d/50-heat-config-docker-compose"}, steps...)
	}
	var log strings.Builder
	for _, step := range steps {
		cmd := exec.Command("/usr/bin/python3", filepath.Join(u.dir, step))
		cmd.Dir = "/"
		out, err := cmd.CombinedOutput()
		log.Write(out)
		if err != nil {
			t.Fatalf("%s: %v\n%s", step, err, out)
		}
	}
	text, err := os.ReadFile("/var/lib/heat-config/deployed/" + c.ID() + ".notify.json")
	if errors.Is(err, os.ErrNotExist) {
		t.Logf("heat-agents signalled nothing:\n%s", log.String())
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var signal map[string]any
	if err := json.Unmarshal(text, &signal); err != nil {
		t.Fatal(err)
	}
	return signal
}
