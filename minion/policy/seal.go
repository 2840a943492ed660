package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/target"
)

// Seal restricts the agent of a host, for masters and salt-call alike. It is the file seal.yaml, read once when
// the program starts; docs/sealed.md describes it. It is immutable.
type Seal struct {
	// Name is the name of the file, for messages.
	Name string
	// Programs are the programs that may be started: absolute paths of files without symbolic links, and whole
	// trees, which end with a slash.
	Programs []string
	// Read and Write are the trees that the kernel lets the agent and its programs access.
	Read, Write []Place
	// Masters are the SHA-256 fingerprints of masters' keys, in lower case.
	Masters []string
	// Update lets a master order updates of the program. cmd/internal/update checks it.
	Update bool
	// LocalSockets lets programs reach others on this host through Unix sockets, such as systemd and D-Bus.
	LocalSockets bool
	// KernelOptional permits kernels that cannot enforce the seal; then only the registry enforces it.
	KernelOptional bool

	functions, states []rule
}

// Place is a directory or file in a seal, with the line that names it.
type Place struct {
	Path string
	Line int
}

// rule allows the functions that match a glob, if their arguments meet the conditions.
type rule struct {
	glob       string
	line       int
	conditions []condition
}

// condition restricts one argument or, with the name "*", all arguments without a condition of their own. Each text
// in the argument must match a glob. A missing argument counts as the empty text.
type condition struct {
	name  string
	globs []string
	line  int
}

// otherArguments is the name of the condition for arguments without one of their own.
const otherArguments = "*"

// ParseSeal parses a seal. name is the file name for errors, which also have the line. Unknown and duplicate keys are
// errors, because a seal must not be misread.
func ParseSeal(text []byte, name string) (*Seal, error) {
	if _, err := yaml.Parse(text, name); err != nil {
		return nil, fmt.Errorf("cannot read the seal: %w", err)
	}
	tree, err := yaml.Tree(text, name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the seal: %w", err)
	}
	s := &Seal{Name: name}
	if tree == nil || len(tree.Pairs) == 0 {
		return nil, s.bad(1, "it is empty; a seal without a function is written: functions: []")
	}
	for _, p := range tree.Pairs {
		if err := s.set(p.Key, p.Value); err != nil {
			return nil, err
		}
	}
	if tree.Get("functions") == nil {
		return nil, s.bad(tree.Line, "it has no functions")
	}
	return s, nil
}

func (s *Seal) bad(line int, format string, args ...any) error {
	return fmt.Errorf("cannot use the seal: %s:%d: %s", s.Name, line, fmt.Sprintf(format, args...))
}

// set parses one key of the file.
func (s *Seal) set(key, v *yaml.Node) (err error) {
	switch key.Text {
	case "functions":
		s.functions, err = s.rules(v)
	case "states":
		s.states, err = s.rules(v)
	case "programs":
		var list []Place
		list, err = s.places(v)
		for _, p := range list {
			s.Programs = append(s.Programs, resolved(p.Path))
		}
	case "read":
		s.Read, err = s.places(v)
	case "write":
		s.Write, err = s.places(v)
	case "masters":
		s.Masters, err = s.fingers(v)
	case "update":
		s.Update, err = s.truth(v)
	case "local_sockets":
		s.LocalSockets, err = s.truth(v)
	case "kernel":
		if s.KernelOptional = v.Text == "optional"; !s.KernelOptional && v.Text != "required" {
			err = s.bad(v.Line, "kernel is required or optional, not %s", v.Text)
		}
	default:
		err = s.bad(key.Line, "unknown key %s", key.Text)
	}
	return err
}

func (s *Seal) truth(v *yaml.Node) (bool, error) {
	if v.Text != "true" && v.Text != "false" {
		return false, s.bad(v.Line, "a switch is true or false, not %q", v.Text)
	}
	return v.Text == "true", nil
}

// list returns the items of a list. A missing value or a scalar is an error, because the owner may have meant
// something else.
func (s *Seal) list(v *yaml.Node) ([]*yaml.Node, error) {
	if v.Scalar || len(v.Pairs) > 0 {
		return nil, s.bad(v.Line, "it must be a list")
	}
	return v.Items, nil
}

// places parses absolute paths. A trailing slash is kept.
func (s *Seal) places(v *yaml.Node) ([]Place, error) {
	items, err := s.list(v)
	var list []Place
	for _, n := range items {
		if !n.Scalar || !filepath.IsAbs(n.Text) || filepath.Clean(n.Text) != strings.TrimSuffix(n.Text, "/") && n.Text != "/" {
			return nil, s.bad(n.Line, "%q is not an absolute path without \"..\"", n.Text)
		}
		list = append(list, Place{n.Text, n.Line})
	}
	return list, err
}

func (s *Seal) fingers(v *yaml.Node) ([]string, error) {
	items, err := s.list(v)
	var list []string
	for _, n := range items {
		finger := strings.ToLower(n.Text)
		if !n.Scalar || len(finger) != 95 || strings.Trim(finger, "0123456789abcdef:") != "" {
			return nil, s.bad(n.Line, "%q is not a SHA-256 fingerprint as salt-key -F master prints it", n.Text)
		}
		list = append(list, finger)
	}
	return list, err
}

// rules parses globs of functions, each alone or with conditions.
func (s *Seal) rules(v *yaml.Node) ([]rule, error) {
	items, err := s.list(v)
	var list []rule
	for _, n := range items {
		r := rule{glob: n.Text, line: n.Line}
		if !n.Scalar {
			if len(n.Pairs) != 1 || !n.Pairs[0].Key.Scalar || n.Pairs[0].Value.Scalar || len(n.Pairs[0].Value.Items) > 0 {
				return nil, s.bad(n.Line, "a function is a name, or one name with the conditions of its arguments")
			}
			r.glob = n.Pairs[0].Key.Text
			for _, p := range n.Pairs[0].Value.Pairs {
				c, err := s.condition(p)
				if err != nil {
					return nil, err
				}
				r.conditions = append(r.conditions, c)
			}
			if r.conditions == nil {
				return nil, s.bad(n.Line, "%s has no conditions after its colon", r.glob)
			}
		}
		if mod, fun, _ := strings.Cut(r.glob, "."); r.glob != "*" && (mod == "" || fun == "") {
			return nil, s.bad(r.line, "%q is not a function; write module.function or module.*", r.glob)
		}
		list = append(list, r)
	}
	return list, err
}

func (s *Seal) condition(p yaml.Pair) (condition, error) {
	c := condition{name: p.Key.Text, line: p.Key.Line}
	items := p.Value.Items
	if p.Value.Scalar {
		items = []*yaml.Node{p.Value}
	}
	for _, n := range items {
		if !n.Scalar {
			return c, s.bad(n.Line, "the condition of %s must be globs", c.name)
		}
		c.globs = append(c.globs, n.Text)
	}
	if len(p.Value.Pairs) > 0 {
		return c, s.bad(p.Value.Line, "the condition of %s must be globs", c.name)
	}
	return c, nil
}

// listed returns the rules for a kind of function. The rules for returners are among those for functions, as in
// minion_allow_functions.
func (s *Seal) listed(kind modules.Kind) []rule {
	if kind == modules.State {
		return s.states
	}
	return s.functions
}

// Refuse returns why the seal refuses a function, or nil.
func (s *Seal) Refuse(kind modules.Kind, fun string) error {
	// guard: seal minion:TestSealHoldsHoweverDeep
	if s != nil && !slices.ContainsFunc(s.listed(kind), func(r rule) bool { return target.Glob(r.glob, fun) }) {
		return &modules.RefusedError{Fun: named(kind, fun), Why: s.Name + " does not name it"}
	}
	return nil
}

func named(kind modules.Kind, fun string) string {
	if kind == modules.State {
		return "state:" + fun
	}
	return fun
}

// RefuseArguments returns why the seal refuses a function with these arguments, or nil. A single rule must
// allow all of them.
func (s *Seal) RefuseArguments(kind modules.Kind, fun string, given func() map[string]any) error {
	if s == nil {
		return nil
	}
	var args map[string]any
	var first error
	for _, r := range s.listed(kind) {
		if !target.Glob(r.glob, fun) {
			continue
		}
		if len(r.conditions) == 0 {
			return nil
		}
		if args == nil {
			args = given()
		}
		why := r.refuse(args)
		if why == "" {
			return nil
		}
		if first == nil {
			first = &modules.RefusedError{Fun: named(kind, fun), Why: s.Name + ":" + why}
		}
	}
	return first
}

// refuse returns why arguments do not meet the conditions, prefixed by the line, or "" if they do.
func (r *rule) refuse(args map[string]any) string {
	var own []string
	for _, c := range r.conditions {
		if c.name != otherArguments {
			own = append(own, c.name)
			v, is := args[c.name]
			if !is && len(c.globs) == 0 {
				continue
			}
			for _, text := range argumentTexts(v, nil) {
				if !c.allows(text) {
					return fmt.Sprintf("%d: %s may not be %q", c.line, c.name, short(text))
				}
			}
		}
	}
	for _, c := range r.conditions {
		if c.name != otherArguments {
			continue
		}
		for name, v := range args {
			if slices.Contains(own, name) {
				continue
			}
			for _, text := range argumentTexts(v, nil) {
				if !c.allows(text) {
					return fmt.Sprintf("%d: %s may not be given", c.line, short(name))
				}
			}
		}
	}
	return ""
}

// short cuts text from a request for a message.
func short(s string) string { return s[:min(len(s), 200)] }

// allows reports whether a text matches a glob. A path that contains ".." or is not in its shortest form could escape
// what a glob with wildcards means. Such a text only matches a glob that is equal to it.
func (c *condition) allows(text string) bool {
	// guard: seal TestConditions instead: plain := true
	plain := !strings.Contains("/"+text+"/", "/../") && !strings.ContainsAny(text, "\x00\n")
	for _, g := range c.globs {
		if g == text || plain && target.Glob(g, text) && (!strings.HasPrefix(g, "/") || filepath.Clean(text) == strings.TrimSuffix(text, "/")) {
			return true
		}
	}
	return false
}

// argumentTexts appends the texts in an argument, including those in its lists and dictionaries. nil and empty
// values count as the empty text.
func argumentTexts(v any, list []string) []string {
	switch v := pyobj.Plain(v).(type) {
	case nil:
		return append(list, "")
	case []any:
		if len(v) == 0 {
			return append(list, "")
		}
		for _, x := range v {
			list = argumentTexts(x, list)
		}
	case map[string]any:
		if len(v) == 0 {
			return append(list, "")
		}
		for k, x := range v {
			list = argumentTexts(x, append(list, k))
		}
	case map[any]any:
		for k, x := range v {
			list = argumentTexts(x, argumentTexts(k, list))
		}
	default:
		return append(list, pytext.Str(v))
	}
	return list
}

// RefuseProgram returns why the seal does not let a program start, or nil. path is absolute. Symbolic links are
// resolved first, as in the kernel.
func (s *Seal) RefuseProgram(path string) error {
	real := resolved(path)
	for _, p := range s.Programs {
		if real == p || strings.HasSuffix(p, "/") && strings.HasPrefix(real, p) {
			return nil
		}
	}
	// guard: seal TestSealedPrograms instead: return nil
	return &modules.RefusedError{Fun: "the program " + path, Why: s.Name + " does not name it"}
}

// Permit returns RefuseProgram for a runner, or nil without a seal.
func (s *Seal) Permit() func(path string) error {
	if s == nil {
		return nil
	}
	return s.RefuseProgram
}

// resolved resolves the symbolic links in a path. A trailing slash, which means a tree, is kept. If the file is
// missing, the path is only cleaned.
func resolved(path string) string {
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err != nil:
		return filepath.Clean(path)
	case strings.HasSuffix(path, "/") && real != "/":
		return real + "/"
	}
	return real
}

// Rules describes what the seal permits for a function: "" if it is refused, "allowed" if unconditional, else
// the conditions.
func (s *Seal) Rules(kind modules.Kind, fun string) string {
	var all []string
	for _, r := range s.listed(kind) {
		if !target.Glob(r.glob, fun) {
			continue
		}
		if len(r.conditions) == 0 {
			return "allowed"
		}
		var parts []string
		for _, c := range r.conditions {
			parts = append(parts, c.text())
		}
		all = append(all, strings.Join(parts, " and "))
	}
	if all == nil {
		return ""
	}
	return "allowed if " + strings.Join(all, ", or if ")
}

func (c *condition) text() string {
	name := c.name
	if name == otherArguments {
		name = "every other argument"
	}
	if len(c.globs) == 0 {
		return name + " is not given"
	}
	quoted := make([]string, len(c.globs))
	for i, g := range c.globs {
		quoted[i] = fmt.Sprintf("%q", g)
	}
	return name + " is " + strings.Join(quoted, " or ")
}

// NamesMasters reports whether the seal lists the keys of permitted masters.
func (s *Seal) NamesMasters() bool { return s != nil && len(s.Masters) > 0 }

// RefuseMaster returns why a master with this SHA-256 key fingerprint is not permitted, or nil.
func (s *Seal) RefuseMaster(finger string) error {
	if s.NamesMasters() && !slices.Contains(s.Masters, finger) {
		return fmt.Errorf("cannot obey this master: %s does not list its key %s", s.Name, finger)
	}
	return nil
}

// RefuseNewMaster returns why the key of an unknown master must not be trusted and stored, or nil without a
// seal.
func (s *Seal) RefuseNewMaster() error {
	if s == nil {
		return nil
	}
	return fmt.Errorf("cannot trust a new master: %s lists no masters, and a sealed minion never stores the key of one", s.Name)
}

// Options returns the configuration without what a seal never permits: the host owner's code, templates in Python,
// and running as another user.
func (s *Seal) Options(opts map[string]any) map[string]any {
	if s == nil {
		return opts
	}
	opts = maps.Clone(opts)
	for _, name := range [...]string{"module_dirs", "states_dirs", "grains_dirs", "beacons_dirs", "returner_dirs", "render_dirs", "utils_dirs",
		"brine_modules_dirs"} {
		opts[name] = []any{}
	}
	opts["renderer_python"], opts["sudo_user"] = "", ""
	return opts
}

// SealFile is the name of the file, in the directory of the minion's configuration.
const SealFile = "seal.yaml"

// maxSeal is the maximum size of a seal, in bytes.
const maxSeal = 1 << 20

// LoadSeal reads a seal. It returns nil if the file is missing, and an error if any user but root could have
// written it.
func LoadSeal(path string) (*Seal, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = rootOnly(path, info)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the seal %s: %w", path, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the seal: %w", err)
	}
	return ParseSeal(text, path)
}

// RootOnly returns an error if any user but root could have written a file, else nil.
func RootOnly(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return rootOnly(path, info)
}

// rootOnly is like RootOnly for a file whose info is known.
func rootOnly(path string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return errors.New("it is not a file")
	case info.Size() > maxSeal:
		return fmt.Errorf("it has %d bytes, more than %d", info.Size(), maxSeal)
	// guard: seal TestSealIsRoots
	case !ownedByRoot(info):
		return errors.New("it does not belong to root: run chown root")
	case info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows":
		return fmt.Errorf("others can write to it (mode %04o): run chmod go-w", info.Mode().Perm())
	}
	return RootOnlyDir(filepath.Dir(path))
}

// RootOnlyDir returns an error if users other than root could replace root's files in a directory.
func RootOnlyDir(path string) error {
	dir, err := os.Stat(path)
	if err != nil {
		return err
	}
	// guard: seal TestSealIsRoots
	if !ownedByRoot(dir) || dir.Mode().Perm()&0o022 != 0 && dir.Mode()&fs.ModeSticky == 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("others can replace it: its directory (mode %04o) must belong to root, and only root may write to it", dir.Mode().Perm())
	}
	return nil
}
