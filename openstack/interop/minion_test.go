//go:build openstack

package interop

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/openstack/lab"
)

// bootMinion does in a guest what cloud-init's module salt_minion does with user data, and starts a minion. The program is ours, or one
// of stock's.
func bootMinion(g *lab.Guest, userData, program string) (*lab.Process, error) {
	if err := g.ApplySaltMinion(userData); err != nil {
		return nil, err
	}
	return startMinion(g, program)
}

// startMinion starts a minion that is already configured.
func startMinion(g *lab.Guest, program string) (*lab.Process, error) {
	name := filepath.Base(program)
	argv := []string{program, "-c", "/etc/salt"}
	if name == "brine-minion" || name == "heat-minion" {
		argv = []string{program, "minion", "-c", "/etc/salt"}
	}
	return g.Start("minion", nil, argv...)
}

// userData waits for the bootstrap of a resource OS::Salt::Minion of a stack.
func userData(ctx context.Context, l *lab.Lab, stack, resource string) (string, error) {
	r, err := l.Heat.WaitResource(ctx, stack, resource, func(r *lab.Resource) bool {
		s, _ := attribute(r, "user_data").(string)
		return strings.Contains(s, "salt_minion")
	})
	if err != nil {
		return "", err
	}
	return r.Attributes["user_data"].(string), nil
}

func attribute(r *lab.Resource, name string) any {
	if r == nil {
		return nil
	}
	return r.Attributes[name]
}

// joinMinion boots a guest as the minion of a resource of a stack.
func joinMinion(t *testing.T, l *lab.Lab, stack, resource, program string) *lab.Guest {
	t.Helper()
	data, err := userData(testContext(t), l, stack, resource)
	if err != nil {
		t.Fatal(err)
	}
	g := guestOf(t, l, resource)
	if _, err := bootMinion(g, data, program); err != nil {
		t.Fatal(err)
	}
	return g
}

// ours returns the path of one of brine's programs.
func ours(program string) string { return filepath.Join(bin, program) }
