//go:build openstack

package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/openstack/lab"
)

// cloudConfig is the part of a cloud-config that makes a machine a minion.
type cloudConfig struct {
	conf                  map[string]any
	publicKey, privateKey string
	grains                map[string]any
}

// readCloudConfig reads the salt_minion section of user data.
func readCloudConfig(userData string) (*cloudConfig, error) {
	v, err := yaml.Parse([]byte(userData), "user_data")
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	s, ok := m["salt_minion"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("there is no salt_minion in %q", userData)
	}
	c := &cloudConfig{}
	c.conf, _ = s["conf"].(map[string]any)
	c.grains, _ = s["grains"].(map[string]any)
	c.publicKey, _ = s["public_key"].(string)
	c.privateKey, _ = s["private_key"].(string)
	return c, nil
}

// bootMinion does in a guest what cloud-init's module salt_minion does with user data, and starts a minion. The program is ours, or one
// of stock's.
func bootMinion(g *lab.Guest, userData, program string) (*lab.Process, error) {
	c, err := readCloudConfig(userData)
	if err != nil {
		return nil, err
	}
	conf, err := yaml.Marshal(c.conf)
	if err != nil {
		return nil, err
	}
	if err := g.WriteFile("/etc/salt/minion", conf, 0o644); err != nil {
		return nil, err
	}
	if len(c.grains) > 0 {
		grains, err := yaml.Marshal(c.grains)
		if err != nil {
			return nil, err
		}
		if err := g.WriteFile("/etc/salt/grains", grains, 0o644); err != nil {
			return nil, err
		}
	}
	if c.publicKey != "" {
		if err := g.WriteFile("/etc/salt/pki/minion/minion.pub", c.publicKey, 0o644); err != nil {
			return nil, err
		}
		if err := g.WriteFile("/etc/salt/pki/minion/minion.pem", c.privateKey, 0o600); err != nil {
			return nil, err
		}
	}
	return startMinion(g, program)
}

// startMinion starts a minion that has its configuration already.
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

// ours is the path of one of our programs.
func ours(program string) string { return filepath.Join(bin, program) }
