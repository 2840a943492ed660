//go:build openstack

package interop

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/brine-salt/brine/openstack/keystone"
)

// TestKeystoneToken: the program for the vendordata service validates the real Keystone's tokens, and returns their
// identities.
func TestKeystoneToken(t *testing.T) {
	ctx := testContext(t)
	admin, _, err := cloud.Heat.Token(ctx)
	if err != nil {
		t.Fatal(err)
	}
	demo, _, err := cloud.Demo.Token(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "token.conf")
	run := func(more, token string) (int, string, string) {
		t.Helper()
		text := "OS_AUTH_URL=" + cloud.AuthURL() + "\nOS_USERNAME=heat\nOS_PASSWORD=heatpw\nOS_PROJECT_NAME=service\n" + more
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "brine-keystone-token"), "-c", conf)
		cmd.Stdin = strings.NewReader(token)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out), stderr.String()
	}
	code, out, stderr := run("", admin)
	var id keystone.Identity
	if err := json.Unmarshal([]byte(out), &id); err != nil || code != 0 || id.User != "admin" || !slices.Contains(id.Roles, "admin") || id.ProjectID == "" {
		t.Errorf("admin: %d %s %s %v", code, out, stderr, err)
	}
	for name, c := range map[string]struct {
		more, token string
		code        int
		want        string
	}{
		"no service":  {"", demo, 1, "none of the roles service, admin"},
		"other user":  {"ALLOW_USERS=nova\n", admin, 1, "the user is admin"},
		"forged":      {"", admin[:len(admin)-4] + "AAAA", 1, "does not know it"},
		"empty":       {"", "", 1, "form"},
		"credentials": {"OS_PASSWORD=wrong\n", admin, 2, "401"},
		"no keystone": {"OS_AUTH_URL=http://127.0.0.1:1\n", admin, 2, "connection refused"},
	} {
		if code, out, stderr := run(c.more, c.token); code != c.code || out != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, admin) {
			t.Errorf("%s: %d %q %q", name, code, out, stderr)
		}
	}
}
