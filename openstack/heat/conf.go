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

// Conf is the configuration of the collectors: sections of options, each with its values in order. Option names have
// underscores, and "DEFAULT" is the section of options before any other section.
type Conf map[string]map[string][]string

// maxConf bounds a configuration file, in bytes.
const maxConf = 1 << 20

// ParseConf reads a configuration file of os-collect-config, in the format of oslo.config. name is for errors.
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
		case trimmed != line: // the value above goes on
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

// merge puts the options of another configuration over c.
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

// Get is the last value of an option, or the default.
func (c Conf) Get(section, name, def string) string {
	if v := c[section][name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return def
}

// All are all values of an option, or the defaults.
func (c Conf) All(section, name string, def ...string) []string {
	if v := c[section][name]; len(v) > 0 {
		return v
	}
	return def
}

// Seconds is an option that holds a number of seconds. What is not a number, or is negative, counts as the default.
func (c Conf) Seconds(section, name string, def time.Duration) time.Duration {
	f, err := strconv.ParseFloat(c.Get(section, name, ""), 64)
	if err != nil || f < 0 || f > 1e9 {
		return def
	}
	return time.Duration(f * float64(time.Second))
}

// secondsOptions are the options that hold a number of seconds.
var secondsOptions = [...][2]string{{"DEFAULT", "polling_interval"}, {"DEFAULT", "min_polling_interval"}, {"DEFAULT", "splay"}, {"cfn", "timeout"},
	{"ec2", "timeout"}, {"request", "timeout"}}

// check reports options whose values cannot be used.
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

// Bool is an option that holds a truth value of oslo.config.
func (c Conf) Bool(section, name string) bool {
	return slices.Contains([]string{"true", "1", "on", "yes"}, strings.ToLower(c.Get(section, name, "")))
}

// confSections are the parts of the metadata's section os-collect-config that become configuration, with their options. The list is that
// of the template os-collect-config.conf of heat-agents.
var confSections = [...]struct {
	name    string
	options [8]string
}{
	{"cfn", [8]string{"metadata_url", "stack_name", "secret_access_key", "access_key_id", "path", "ca_certificate"}},
	{"heat", [8]string{"auth_url", "user_id", "password", "project_id", "stack_id", "resource_name", "region_name"}},
	{"zaqar", [8]string{"auth_url", "user_id", "password", "project_id", "queue_id", "region_name", "use_websockets"}},
	{"request", [8]string{"metadata_url"}},
}

// FromMetadata returns the configuration in the section os-collect-config of metadata, or nil if it is missing.
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
		if text := pytext.Str(v); !strings.ContainsAny(text, "\r\n") { // a line break would begin an option of its own
			c.add(section, name, text)
		}
	}
}

// Text is the configuration as a file.
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

// Paths are the places of everything on disk.
type Paths struct {
	// Root is put before every path, for tests and images; "" is the real host.
	Root string
	// Hooks are directories of hook executables besides the usual two, searched first.
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

// work and outputs are the directories of a group's hook.
func (p Paths) work(group string) string { return p.at("/var/lib/heat-config/heat-config-" + group) }

func (p Paths) outputs(group string) string { return p.at("/var/run/heat-config/heat-config-" + group) }

func (p Paths) hookDirs() []string {
	dirs := make([]string, 0, len(p.Hooks)+2)
	for _, dir := range p.Hooks {
		dirs = append(dirs, p.at(dir))
	}
	return append(dirs, p.at("/usr/libexec/heat-config/hooks"), p.at("/var/lib/heat-config/hooks"))
}

// Settings are the option "heat" of the minion's configuration.
type Settings struct {
	Paths
	// ConfFiles are the configuration files of the collectors.
	ConfFiles []string
	// Over are collector options that win over files and metadata: {heat: {collectors: {cfn: {timeout: 5}}}}.
	Over Conf
	// Timeout ends a deployment that sets no timeout itself.
	Timeout time.Duration
	// SignalTTL is how long a signal is sent again before it is given up.
	SignalTTL time.Duration
	// Parallel is how many deployments run at once.
	Parallel int
	// PreferHooks are groups that an existing hook executable runs, although brine knows them.
	PreferHooks []string
	// Command runs after deployments whenever the metadata has changed, with OS_CONFIG_FILES in its environment. ""
	// turns it off.
	Command string
	// Reboot is the command that restarts the host for a script that asks for it.
	Reboot string
	// KeepConf leaves the configuration file alone when the metadata brings another one.
	KeepConf bool
	// Disabled turns the engine off.
	Disabled bool
}

// The defaults of Settings.
const (
	DefaultTimeout   = 4 * time.Hour
	DefaultSignalTTL = 24 * time.Hour
	defaultReboot    = "shutdown -r now"
)

// NewSettings reads the option "heat" of a minion's configuration. An option of the wrong kind is an error that names it.
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

// confOf reads options of collectors: {polling_interval: 5, cfn: {timeout: 3}}.
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
