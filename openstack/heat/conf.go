package heat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// Conf is the configuration of the collectors: the values of each option by section, in order. Option names have
// underscores. Options before the first section are in "DEFAULT".
type Conf map[string]map[string][]string

// maxConf limits the size of a configuration file in bytes.
const maxConf = 1 << 20

// ParseConf parses a configuration file of os-collect-config, which has the format of oslo.config. Errors contain
// name.
func ParseConf(text, name string) (Conf, error) {
	c, section, last := Conf{}, "DEFAULT", ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		at := func(msg string) error { return fmt.Errorf("cannot read %s line %d: %s", name, i+1, msg) }
		switch trimmed := strings.TrimLeft(line, " \t"); {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
			if trimmed == "" {
				last = ""
			}
		case trimmed != line: // continuation of the value above
			if last == "" {
				return nil, at("unexpected continuation line")
			}
			values := c[section][last]
			values[len(values)-1] += "\n" + trimmed
		case line[0] == '[':
			end := strings.IndexByte(line, ']')
			if end != len(line)-1 || end == 1 {
				return nil, at("invalid section")
			}
			section, last = line[1:end], ""
		default:
			split := strings.IndexAny(line, "=:")
			if split < 1 {
				return nil, at("no = or : found in assignment")
			}
			last = optionName(line[:split])
			c.add(section, last, unquote(strings.TrimSpace(line[split+1:])))
		}
	}
	return c, nil
}

func optionName(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "-", "_") }

func unquote(s string) string {
	if len(s) > 1 && s[0] == s[len(s)-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : len(s)-1]
	}
	return s
}

func (c Conf) add(section, name, value string) {
	if c[section] == nil {
		c[section] = map[string][]string{}
	}
	c[section][name] = append(c[section][name], value)
}

// ReadConf reads configuration files. A missing file counts as empty. Later files add to lists and replace single values.
func ReadConf(paths ...string) (Conf, error) {
	c := Conf{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if os.IsNotExist(err) {
			continue
		}
		if err == nil && info.Size() > maxConf {
			err = fmt.Errorf("%d bytes exceed %d", info.Size(), maxConf)
		}
		var text []byte
		if err == nil {
			text, err = os.ReadFile(path)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", path, err)
		}
		more, err := ParseConf(string(text), path)
		if err != nil {
			return nil, err
		}
		c.merge(more)
	}
	return c, nil
}

// merge replaces options of c by those of another configuration.
func (c Conf) merge(over Conf) {
	for section, options := range over {
		for name, values := range options {
			if c[section] == nil {
				c[section] = map[string][]string{}
			}
			c[section][name] = slices.Clone(values)
		}
	}
}

// Get returns the last value of an option, or the default.
func (c Conf) Get(section, name, def string) string {
	if v := c[section][name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return def
}

// All returns all values of an option, or the defaults.
func (c Conf) All(section, name string, def ...string) []string {
	if v := c[section][name]; len(v) > 0 {
		return v
	}
	return def
}

// Seconds returns an option in seconds. It returns the default for values that are negative or not a number.
func (c Conf) Seconds(section, name string, def time.Duration) time.Duration {
	f, err := strconv.ParseFloat(c.Get(section, name, ""), 64)
	if err != nil || f < 0 || f > 1e9 {
		return def
	}
	return time.Duration(f * float64(time.Second))
}

// secondsOptions are the options in seconds.
var secondsOptions = [...][2]string{{"DEFAULT", "polling_interval"}, {"DEFAULT", "min_polling_interval"}, {"DEFAULT", "splay"}, {"cfn", "timeout"},
	{"ec2", "timeout"}, {"request", "timeout"}}

// check returns an error if an option's value is invalid.
func (c Conf) check() error {
	for _, o := range secondsOptions {
		for _, v := range c[o[0]][o[1]] {
			if _, err := strconv.ParseFloat(v, 64); err != nil {
				return fmt.Errorf("option %s of the section %s must be a number, not %q", o[1], o[0], v)
			}
		}
	}
	return nil
}

// Bool returns an option that is a bool in oslo.config's notation.
func (c Conf) Bool(section, name string) bool {
	return slices.Contains([]string{"true", "1", "on", "yes"}, strings.ToLower(c.Get(section, name, "")))
}

// confSections are the sections, with their options, that become configuration from the metadata's section
// os-collect-config. They are those of heat-agents' template os-collect-config.conf.
var confSections = [...]struct {
	name    string
	options [8]string
}{
	{"cfn", [8]string{"metadata_url", "stack_name", "secret_access_key", "access_key_id", "path", "ca_certificate"}},
	{"heat", [8]string{"auth_url", "user_id", "password", "project_id", "stack_id", "resource_name", "region_name"}},
	{"zaqar", [8]string{"auth_url", "user_id", "password", "project_id", "queue_id", "region_name", "use_websockets"}},
	{"request", [8]string{"metadata_url"}},
}

// FromMetadata returns the configuration in the metadata's section os-collect-config, or nil if it is missing.
func FromMetadata(metadata map[string]any) Conf {
	section, ok := metadata["os-collect-config"].(map[string]any)
	if !ok || len(section) == 0 {
		return nil
	}
	c := Conf{}
	for _, name := range [...]string{"command", "polling_interval", "cachedir", "collectors", "splay"} {
		c.addValue("DEFAULT", name, section[name])
	}
	for _, s := range confSections {
		values, ok := section[s.name].(map[string]any)
		if !ok {
			continue
		}
		for _, name := range s.options {
			if name != "" {
				c.addValue(s.name, name, values[name])
			}
		}
	}
	return c
}

func (c Conf) addValue(section, name string, v any) {
	switch v := v.(type) {
	case nil:
	case []any:
		for _, x := range v {
			c.addValue(section, name, x)
		}
	case map[string]any:
	default:
		if text := pytext.Str(v); !strings.ContainsAny(text, "\r\n") { // a line break would begin another option
			c.add(section, name, text)
		}
	}
}

// Text formats the configuration as a file.
func (c Conf) Text() string {
	var b strings.Builder
	names := make([]string, 0, len(c))
	for name := range c {
		if name != "DEFAULT" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, section := range append([]string{"DEFAULT"}, names...) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("[" + section + "]\n")
		options := make([]string, 0, len(c[section]))
		for name := range c[section] {
			options = append(options, name)
		}
		slices.Sort(options)
		for _, name := range options {
			for _, v := range c[section][name] {
				b.WriteString(name + " = " + strings.ReplaceAll(v, "\n", "\n  ") + "\n")
			}
		}
	}
	return b.String()
}

// Paths locates all files on disk.
type Paths struct {
	// Root is prepended to every path, for tests and images. "" means the real host.
	Root string
	// Hooks are directories of hook programs that are searched before the usual two.
	Hooks []string
}

func (p Paths) at(path string) string {
	if p.Root == "" {
		return path
	}
	return filepath.Join(p.Root, path)
}

func (p Paths) conf() string     { return p.at("/etc/os-collect-config.conf") }
func (p Paths) deployed() string { return p.at("/var/lib/heat-config/deployed") }
func (p Paths) state() string    { return p.at("/var/lib/heat-config/brine") }

// work and outputs return the directories of a group's hook.
func (p Paths) work(group string) string { return p.at("/var/lib/heat-config/heat-config-" + group) }

func (p Paths) outputs(group string) string { return p.at("/var/run/heat-config/heat-config-" + group) }

func (p Paths) hookDirs() []string {
	dirs := make([]string, 0, len(p.Hooks)+2)
	for _, dir := range p.Hooks {
		dirs = append(dirs, p.at(dir))
	}
	return append(dirs, p.at("/usr/libexec/heat-config/hooks"), p.at("/var/lib/heat-config/hooks"))
}

// Settings is the option "heat" of the minion's configuration.
type Settings struct {
	Paths
	// ConfFiles are the configuration files of the collectors.
	ConfFiles []string
	// Over has collector options that take precedence over files and metadata: {heat: {collectors: {cfn: {timeout:
	// 5}}}}.
	Over Conf
	// Timeout is the time limit of deployments that do not set one.
	Timeout time.Duration
	// SignalTTL is how long a signal is retried before it is dropped.
	SignalTTL time.Duration
	// Parallel is how many deployments may run at once.
	Parallel int
	// PreferHooks are groups for which an existing hook program is used although brine implements them.
	PreferHooks []string
	// Command runs after the deployments whenever the metadata has changed, with OS_CONFIG_FILES in its environment.
	// "" turns it off.
	Command string
	// Reboot is the command that restarts the host if a script requests it.
	Reboot string
	// KeepConf keeps the configuration file unchanged if the metadata contains a different configuration.
	KeepConf bool
	// Disabled turns the engine off.
	Disabled bool
}

// Defaults of Settings.
const (
	DefaultTimeout   = 4 * time.Hour
	DefaultSignalTTL = 24 * time.Hour
	defaultReboot    = "shutdown -r now"
)

// NewSettings parses the option "heat" of a minion's configuration. The error for an invalid option contains its
// name.
func NewSettings(opts map[string]any) (Settings, error) {
	s := Settings{Timeout: DefaultTimeout, SignalTTL: DefaultSignalTTL, Parallel: 1, Reboot: defaultReboot}
	all, ok := opts["heat"].(map[string]any)
	switch v := opts["heat"].(type) {
	case nil, map[string]any:
	case bool:
		s.Disabled = !v
	default:
		return s, fmt.Errorf("option heat must be a dictionary, not %s", pytext.Repr(v))
	}
	if dir := os.Getenv("HEAT_CONFIG_HOOKS"); dir != "" {
		s.Hooks = append(s.Hooks, dir)
	}
	if ok {
		for name, v := range all {
			if err := s.set(name, v); err != nil {
				return s, err
			}
		}
	}
	if len(s.ConfFiles) == 0 {
		s.ConfFiles = []string{s.conf()}
	}
	return s, nil
}

func (s *Settings) set(name string, v any) (err error) {
	wrong := func(want string) error {
		return fmt.Errorf("option heat: %s must be %s, not %s", name, want, pytext.Repr(v))
	}
	text, isText := v.(string)
	flag, isFlag := v.(bool)
	var number float64
	isNumber := true
	switch n := v.(type) {
	case int64:
		number = float64(n)
	case int:
		number = float64(n)
	case float64:
		number = n
	default:
		isNumber = false
	}
	switch name {
	case "root", "command", "reboot_command":
		if !isText {
			return wrong("text")
		}
		switch name {
		case "root":
			s.Root = text
		case "command":
			s.Command = text
		default:
			s.Reboot = text
		}
	case "enabled", "write_config":
		if !isFlag {
			return wrong("true or false")
		}
		if name == "enabled" {
			s.Disabled = !flag
		} else {
			s.KeepConf = !flag
		}
	case "timeout", "signal_ttl", "parallel":
		if !isNumber || number <= 0 || number > 1e8 {
			return wrong("a positive number")
		}
		switch name {
		case "timeout":
			s.Timeout = time.Duration(number * float64(time.Second))
		case "signal_ttl":
			s.SignalTTL = time.Duration(number * float64(time.Second))
		default:
			s.Parallel = max(1, min(64, int(number)))
		}
	case "config_files", "hooks", "prefer_hooks":
		list, ok := v.([]any)
		if !ok {
			return wrong("a list")
		}
		var texts []string
		for _, x := range list {
			texts = append(texts, pytext.Str(x))
		}
		switch name {
		case "config_files":
			s.ConfFiles = texts
		case "hooks":
			s.Hooks = append(s.Hooks, texts...)
		default:
			s.PreferHooks = texts
		}
	case "collectors":
		s.Over, err = confOf(v)
	default:
		return fmt.Errorf("option heat: there is no option %s", name)
	}
	return err
}

// confOf parses options of collectors: {polling_interval: 5, cfn: {timeout: 3}}.
func confOf(v any) (Conf, error) {
	all, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("option heat: collectors must be a dictionary, not %s", pytext.Repr(v))
	}
	c := Conf{}
	for name, v := range all {
		section, ok := v.(map[string]any)
		if !ok {
			c.addValue("DEFAULT", optionName(name), v)
			continue
		}
		for option, v := range section {
			c.addValue(name, optionName(option), v)
		}
	}
	return c, nil
}
