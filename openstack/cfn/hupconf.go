package cfn

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/configparser"
	"github.com/brine-salt/brine/modules/pyobj"
)

const (
	hupFile   = "/etc/cfn/cfn-hup.conf"
	hooksFile = "/etc/cfn/hooks.conf"
	hooksDir  = "/etc/cfn/hooks.d"
	// defaultInterval is the interval of the daemon in minutes.
	defaultInterval = 10
)

// hupConfig is the configuration of cfn-hup.
type hupConfig struct {
	stack, credentials string
	interval           time.Duration
	hooks              []hook
}

// hook is an action for changes of a resource.
type hook struct {
	name     string
	triggers []string
	resource string
	// part is the path of a part of the metadata. If it is empty, it means all metadata.
	part   []string
	runas  string
	action string
}

// readHup reads the main configuration and the hooks in a directory.
func (h *host) readHup(dir string) (*hupConfig, error) {
	main, err := h.readConf(hupFile)
	if err != nil {
		return nil, fmt.Errorf("cannot open the main configuration: %w", err)
	}
	files := []string{}
	if _, err := os.Stat(h.path(hooksFile)); err == nil {
		files = append(files, hooksFile)
	}
	list, err := os.ReadDir(h.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the hooks: %w", err)
	}
	for _, e := range list {
		if !e.IsDir() {
			files = append(files, path.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no hook files found at %s or %s", hooksFile, dir)
	}
	all := &confSections{}
	all.merge(main, hupFile)
	for _, name := range files {
		sections, err := h.readConf(name)
		if err != nil {
			return nil, err
		}
		all.merge(sections, name)
	}
	return h.hupOf(all)
}

func (h *host) readConf(name string) ([]*configparser.Section, error) {
	b, err := readBounded(h.path(name))
	if err != nil {
		return nil, err
	}
	return configparser.Parse(string(b), name, true)
}

// confSections holds the sections of several files. Options of later files are added to the earlier ones.
type confSections struct {
	list []*configparser.Section
	from map[string]string
}

func (c *confSections) merge(sections []*configparser.Section, file string) {
	if c.from == nil {
		c.from = map[string]string{}
	}
	for _, s := range sections {
		have := configparser.Find(c.list, s.Name)
		if have == nil {
			have = &configparser.Section{Name: s.Name}
			c.list = append(c.list, have)
		}
		c.from[s.Name] = file
		for _, o := range s.Options {
			have.Set(o.Name, o.Value)
		}
	}
}

// option returns a required option. "%%" and "%(name)s" are replaced as in Python's configparser; other percent signs
// remain.
func (c *confSections) option(section, name string) (string, error) {
	s := configparser.Find(c.list, section)
	if s != nil {
		if v, ok := s.Get(name); ok {
			return interpolate(s, v, 0), nil
		}
	}
	return "", fmt.Errorf("%s: section %q has no option %q", c.from[section], section, name)
}

func interpolate(s *configparser.Section, v string, depth int) string {
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] != '%' || i+1 == len(v) || depth > 10 {
			b.WriteByte(v[i])
			continue
		}
		end := strings.Index(v[i:], ")s")
		switch {
		case v[i+1] == '%':
			b.WriteByte('%')
			i++
			continue
		case v[i+1] == '(' && end > 0:
			if other, ok := s.Get(strings.ToLower(v[i+2 : i+end])); ok {
				b.WriteString(interpolate(s, other, depth+1))
				i += end + 1
				continue
			}
		}
		b.WriteByte('%')
	}
	return b.String()
}

func (h *host) hupOf(c *confSections) (*hupConfig, error) {
	out := &hupConfig{interval: defaultInterval * time.Minute}
	var err error
	if configparser.Find(c.list, "main") == nil {
		return nil, fmt.Errorf("%s has no section main", hupFile)
	}
	if out.stack, err = c.option("main", "stack"); err != nil {
		return nil, err
	}
	if out.credentials, err = c.option("main", "credential-file"); err != nil {
		return nil, err
	}
	if _, err := readBounded(h.path(out.credentials)); err != nil {
		return nil, fmt.Errorf("invalid credentials file %s: %w", out.credentials, err)
	}
	if text, err := c.option("main", "interval"); err == nil {
		minutes, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || minutes < 1 || minutes > 24*60 {
			return nil, fmt.Errorf("%s: interval must be minutes between 1 and 1440, not %q", c.from["main"], text)
		}
		out.interval = time.Duration(minutes) * time.Minute
	}
	for _, s := range c.list {
		if s.Name == "main" {
			continue
		}
		k, err := hookOf(c, s.Name)
		if err != nil {
			return nil, err
		}
		out.hooks = append(out.hooks, k)
	}
	if len(out.hooks) == 0 {
		return nil, fmt.Errorf("no hooks were found in %s or the directory of hooks", hooksFile)
	}
	return out, nil
}

func hookOf(c *confSections, section string) (hook, error) {
	k := hook{name: section}
	triggers, err := c.option(section, "triggers")
	if err != nil {
		return k, err
	}
	k.triggers = strings.FieldsFunc(triggers, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
	place, err := c.option(section, "path")
	if err != nil {
		return k, err
	}
	if k.runas, err = c.option(section, "runas"); err != nil {
		return k, err
	}
	if k.action, err = c.option(section, "action"); err != nil {
		return k, err
	}
	// Resources.<resource>.Metadata[.<part>…]
	words := strings.Split(place, ".")
	if len(words) < 2 || words[1] == "" {
		return k, fmt.Errorf("%s: path of section %q must begin with Resources.<name>, not %q", c.from[section], section, place)
	}
	k.resource = words[1]
	if len(words) > 3 && words[2] == "Metadata" {
		k.part = words[3:]
	}
	return k, nil
}

// event returns the changes to the part of the metadata that a hook watches: "post.add", "post.update",
// "post.delete", or nil. As in heat-cfntools, new metadata also counts as updated.
func (k hook) event(a *answer) []string {
	before, had := partOf(a.last, k.part)
	now, has := partOf(a.metadata, k.part)
	switch {
	case !had && !has: // the path does not exist: any change counts
		if a.changed {
			return []string{"post.update"}
		}
	case !had:
		return []string{"post.add", "post.update"}
	case !has:
		return []string{"post.delete", "post.update"}
	case !pyobj.Equal(before, now):
		return []string{"post.update"}
	}
	return nil
}

// partOf follows a path through metadata. Keys may contain dots, so the longest key that matches is used.
func partOf(v any, names []string) (any, bool) {
	if v == nil {
		return nil, false
	}
	if len(names) == 0 {
		return v, true
	}
	d, ok := v.(*pyobj.Dict)
	if !ok {
		return nil, false
	}
	for n := len(names); n > 0; n-- {
		if next, ok := d.Text(strings.Join(names[:n], ".")); ok && next != nil {
			return partOf(next, names[n:])
		}
	}
	return nil, false
}

// wants reports whether the hook runs for an event.
func (k hook) wants(event string) bool {
	for _, t := range k.triggers {
		if t == event {
			return true
		}
	}
	return false
}
