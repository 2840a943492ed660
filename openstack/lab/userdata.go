//go:build linux

package lab

import (
	"fmt"
	"path/filepath"

	"github.com/brine-salt/brine/internal/python/yaml"
)

// ApplySaltMinion does in the guest what cloud-init's module salt_minion does with user data: it writes the minion's
// configuration, grains and keys to /etc/salt. It starts nothing.
func (g *Guest) ApplySaltMinion(userData string) error {
	return g.ApplySaltMinionAt("/", userData)
}

// ApplySaltMinionAt is like ApplySaltMinion, for one of several minions in a guest: all its files are below root,
// which becomes its root_dir unless it is "/". Its configuration is in etc/salt there.
func (g *Guest) ApplySaltMinionAt(root, userData string) error {
	v, err := yaml.Parse([]byte(userData), "user_data")
	if err != nil {
		return err
	}
	m, _ := v.(map[string]any)
	s, ok := m["salt_minion"].(map[string]any)
	if !ok {
		return fmt.Errorf("there is no salt_minion in the user data %q", userData)
	}
	for name, key := range map[string]string{"minion": "conf", "grains": "grains"} {
		if s[key] == nil {
			continue
		}
		text, err := yaml.Marshal(s[key])
		if err != nil {
			return err
		}
		if name == "minion" && root != "/" {
			text += "root_dir: " + root + "\n"
		}
		if err := g.WriteFile(filepath.Join(root, "etc/salt", name), text, 0o644); err != nil {
			return err
		}
	}
	if pub, ok := s["public_key"].(string); ok {
		if err := g.WriteFile(filepath.Join(root, "etc/salt/pki/minion/minion.pub"), pub, 0o644); err != nil {
			return err
		}
		private, _ := s["private_key"].(string)
		return g.WriteFile(filepath.Join(root, "etc/salt/pki/minion/minion.pem"), private, 0o600)
	}
	return nil
}
