//go:build linux

package hooktest

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/openstack/lab/original"
)

// Upstream returns the side of heat-agents. As in an image with it, 55-heat-config finds the deployment in the
// metadata, runs the hook of its group, and passes the hook's output to heat-config-notify, which here sends nothing.
func Upstream(t testing.TB) Side {
	t.Helper()
	set, err := original.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	salt := testsalt.Python(t)
	return func(t *testing.T, c *Case) map[string]any {
		t.Helper()
		const notify, metadata = "/usr/local/bin/heat-config-notify", "/run/heat-config/heat-config"
		err := errors.Join(set.LayOut("/", salt), os.WriteFile(notify, []byte("#!/bin/sh\ncat >/dev/null\n"), 0o755),
			os.MkdirAll("/run/heat-config", 0o755), os.WriteFile(metadata, []byte("["+string(c.JSON(t))+"]"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		steps := []string{"55-heat-config"}
		if c.Group() == "docker-compose" {
			steps = []string{"50-heat-config-docker-compose", "55-heat-config"}
		}
		var log strings.Builder
		for _, step := range steps {
			cmd := exec.Command("/usr/libexec/os-refresh-config/configure.d/" + step)
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
}
