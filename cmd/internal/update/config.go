package update

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/cmd/internal/update/layout"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/minion/policy"
)

// Files of the host's administrator, in the directory of the minion's configuration. No function of brine writes
// them.
const (
	ConfigFile = "update.yaml"
	RootFile   = "update-root.json"
)

// Config holds the settings in update.yaml: the administrator's decisions about updates.
type Config struct {
	// Dir is the directory of the file, of the minion's configuration and of the seal.
	Dir string
	// Enabled is update_enabled. It is false without a file.
	Enabled bool
	// Sources are the URLs of the repository, tried in this order: a web server's, or salt://.
	Sources []string
	Channel string
	// Root is the file with the first trusted root metadata: the pinned keys.
	Root string
	// Program is the minion's program. It is replaced by a link to one of the slots in StateDir.
	Program, StateDir string
	// Restart restarts the minion. Its first word is the absolute path of a program.
	Restart []string
	// Health is the time limit for a new program to sign in and get an answer. Download is the time limit for all
	// downloads of a check.
	Health, Download time.Duration
}

// Limits of the file.
const (
	maxSources           = 8
	minHealth, maxHealth = 5 * time.Second, 10 * time.Minute
	minDownload          = 10 * time.Second
	maxDownload          = 2 * time.Hour
	defaultHealth        = 60 * time.Second
	defaultDownload      = 10 * time.Minute
	defaultProgram       = "/usr/bin/brine-minion"
	defaultStateDir      = "/var/lib/brine-update"
	systemctl            = "/usr/bin/systemctl"
	service              = "/usr/sbin/service"
	minionUnit           = "salt-minion.service"
	minionService        = "salt-minion"
	systemdRuns          = "/run/systemd/system"
	defaultChannel       = "stable"
)

// LoadConfig reads update.yaml in a configuration directory. Without the file, updates are off. It returns an error
// if others than root may write to the file or to the pinned keys, or if a key is unknown.
func LoadConfig(dir string) (*Config, error) {
	path := filepath.Join(dir, ConfigFile)
	c := &Config{Dir: dir, Channel: defaultChannel, Root: filepath.Join(dir, RootFile),
		Program: defaultProgram, StateDir: defaultStateDir, Health: defaultHealth,
		Download: defaultDownload, Restart: defaultRestart()}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	// guard: update TestConfigIsRoots
	if err := policy.RootOnly(path); err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", path, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of updates: %w", err)
	}
	if err := c.parse(text, path); err != nil || !c.Enabled {
		return c, err
	}
	// guard: update TestConfigIsRoots
	if err := policy.RootOnly(c.Root); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot use the pinned keys %s: %w", c.Root, err)
	}
	return c, nil
}

func defaultRestart() []string {
	if _, err := os.Stat(systemdRuns); err == nil {
		return []string{systemctl, "restart", minionUnit}
	}
	return []string{service, minionService, "restart"}
}

func (c *Config) parse(text []byte, name string) error {
	if _, err := yaml.Parse(text, name); err != nil {
		return fmt.Errorf("cannot read the configuration of updates: %w", err)
	}
	tree, err := yaml.Tree(text, name)
	if err != nil {
		return fmt.Errorf("cannot read the configuration of updates: %w", err)
	}
	if tree == nil {
		return nil
	}
	for _, p := range tree.Pairs {
		if err := c.set(p.Key.Text, p.Value); err != nil {
			return fmt.Errorf("cannot use %s:%d: %w", name, p.Key.Line, err)
		}
	}
	if tree.Scalar || len(tree.Items) > 0 {
		return fmt.Errorf("cannot use %s:%d: it must be a mapping", name, tree.Line)
	}
	if c.Enabled && len(c.Sources) == 0 {
		return fmt.Errorf("cannot use %s: update_enabled is true, and there is no source", name)
	}
	return nil
}

func (c *Config) set(key string, v *yaml.Node) (err error) {
	switch key {
	case "update_enabled":
		if v.Text != "true" && v.Text != "false" {
			return fmt.Errorf("update_enabled must be true or false, not %q", v.Text)
		}
		c.Enabled = v.Text == "true"
	case "source":
		c.Sources, err = words(v)
		if err == nil && len(c.Sources) > maxSources {
			err = fmt.Errorf("there are more than %d sources", maxSources)
		}
		for _, s := range c.Sources {
			err = errors.Join(err, checkSource(s))
		}
	case "channel":
		if c.Channel = v.Text; !slices.Contains(layout.Channels, c.Channel) {
			err = fmt.Errorf("unknown channel %q; channels are %s", v.Text,
				strings.Join(layout.Channels, " and "))
		}
	case "root":
		c.Root, err = absolute(v)
	case "program":
		c.Program, err = absolute(v)
	case "state_dir":
		c.StateDir, err = absolute(v)
	case "restart":
		c.Restart, err = words(v)
		if err == nil && (len(c.Restart) == 0 || !filepath.IsAbs(c.Restart[0])) {
			err = errors.New("restart must begin with the absolute path of a program")
		}
	case "health_seconds":
		c.Health, err = seconds(v, minHealth, maxHealth)
	case "download_seconds":
		c.Download, err = seconds(v, minDownload, maxDownload)
	default:
		err = fmt.Errorf("unknown option %s", key)
	}
	return err
}

func words(v *yaml.Node) (list []string, err error) {
	items := v.Items
	if v.Scalar {
		items = []*yaml.Node{v}
	}
	for _, n := range items {
		if !n.Scalar || n.Text == "" {
			return nil, errors.New("it must be a text or a list of texts")
		}
		list = append(list, n.Text)
	}
	if len(v.Pairs) > 0 {
		return nil, errors.New("it must be a text or a list of texts")
	}
	return list, nil
}

func absolute(v *yaml.Node) (string, error) {
	if !v.Scalar || !filepath.IsAbs(v.Text) {
		return "", fmt.Errorf("%q is not an absolute path", v.Text)
	}
	return filepath.Clean(v.Text), nil
}

func seconds(v *yaml.Node, least, most time.Duration) (time.Duration, error) {
	n, err := strconv.Atoi(v.Text)
	d := time.Duration(n) * time.Second
	if err != nil || n < 0 || d < least || d > most {
		return 0, fmt.Errorf("%q is not a number of seconds from %.0f to %.0f", v.Text,
			least.Seconds(), most.Seconds())
	}
	return d, nil
}

// checkSource returns an error if the URL of a repository is invalid.
func checkSource(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("cannot read the source: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "salt":
		return fmt.Errorf("the source %q is neither http://, https:// nor salt://", s)
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("the source %q is not the URL of a directory", s)
	}
	return nil
}
