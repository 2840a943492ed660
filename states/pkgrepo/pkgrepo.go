// Package pkgrepo is Salt's state module "pkgrepo": repositories of packages (salt/states/pkgrepo.py).
package pkgrepo

import (
	"bufio"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/aptsource"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// manager is pkgrepo.managed while it runs.
type manager struct {
	*states.Call
	ctx    context.Context
	ret    *states.Result
	family string
	name   string
	repo   string         // what the package manager is asked about
	kw     map[string]any // what it is told
	want   map[string]any // the repository as it should be
	pre    map[string]any // as it was
}

func has(kw map[string]any, key string) bool {
	_, ok := kw[key]
	return ok
}

func managed(ctx context.Context, c *states.Call) (*states.Result, error) {
	m := &manager{Call: c, ctx: ctx, ret: c.Result(), family: pytext.Str(c.Grain("os_family")), name: c.Name(), kw: c.OwnKeywords()}
	if done, err := m.arguments(); done || err != nil {
		return m.ret, err
	}
	pre, err := m.look()
	if modules.IsExecError(err) {
		return m.ret.As(states.False, "Failed to examine repo '"+m.name+"': "+states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	m.pre = pre
	m.want = m.kw
	if m.family == "Debian" {
		if m.want, err = m.expand(); err != nil {
			return nil, err
		}
	}
	if len(pre) > 0 && !m.stale() {
		delete(m.pre, "file")
		m.want = maps.Clone(m.want)
		if m.family != "Debian" {
			delete(m.kw, "file") // they are one in Salt
		}
		delete(m.want, "file")
		same, err := m.configured()
		if err != nil {
			return nil, err
		}
		if same {
			return m.ret.As(states.True, "Package repo '"+m.name+"' already configured")
		}
	}
	if c.Test() {
		for key, v := range m.want {
			if len(pre) > 0 && !nested.Equal(v, m.pre[key]) {
				m.ret.Changes[key] = map[string]any{"new": v, "old": m.pre[key]}
			}
		}
		if len(pre) == 0 {
			m.ret.Changes["repo"] = m.name
		}
		return m.ret.As(states.None, "Package repo '"+m.name+"' would be configured. This may cause pkg states to behave differently than stated if "+
			"this action is repeated without test=True, due to the differences in the configured repositories.")
	}
	return m.configure()
}

// arguments checks and sorts the arguments. done means that the state ends here.
func (m *manager) arguments() (done bool, err error) {
	fail := func(text string) (bool, error) {
		m.ret.Result, m.ret.Comment = states.False, text
		return true, nil
	}
	if !pkglist.Has(m.Call.Call, "pkg.get_repo") {
		return fail("Repo management not implemented on this platform")
	}
	if has(m.kw, "repo") {
		return fail("'repo' is not a supported argument for this state. The 'name' argument is probably what was intended.")
	}
	enabled, disabled := m.kw["enabled"], m.kw["disabled"]
	delete(m.kw, "enabled")
	delete(m.kw, "disabled")
	switch {
	case enabled != nil && disabled != nil:
		return fail("Only one of enabled/disabled is allowed")
	case enabled == nil && disabled == nil:
		enabled = true
	}
	insecure, given := m.kw["allow_insecure_key"]
	delete(m.kw, "allow_insecure_key")
	if has(m.kw, "key_url") {
		url, ok := m.kw["key_url"].(string)
		if !ok {
			return true, modules.NoAttribute(m.kw["key_url"], "strip")
		}
		if strings.HasPrefix(pytext.Strip(url), "http:") && given && !pytext.Truth(insecure) {
			return fail("Cannot have 'key_url' using http with 'allow_insecure_key' set to True")
		}
	}
	m.repo = m.name
	m.kw["name"] = m.Value("name")
	on := pytext.IsTrue(enabled)
	if disabled != nil {
		on = !pytext.IsTrue(disabled)
	}
	switch m.family {
	case "Debian":
		if ppa := m.Value("ppa"); ppa != nil {
			m.repo = "ppa:" + pytext.Str(ppa)
		}
		m.kw["disabled"] = !on
	case "RedHat", "Suse":
		if copr, ok := m.Value("copr").(string); ok && m.family == "RedHat" {
			m.repo = "copr:" + copr
		}
		if human, ok := m.kw["humanname"]; ok {
			m.kw["name"] = human
			delete(m.kw, "humanname")
		}
		m.kw["enabled"] = on
	case "NILinuxRT", "Poky":
		m.kw["enabled"] = on
	}
	return false, nil
}

// look asks for the repository as it is.
func (m *manager) look() (map[string]any, error) {
	kw := maps.Clone(m.kw)
	kw["repo"] = m.repo
	v, err := m.ExecKw(m.ctx, "pkg.get_repo", nil, kw)
	have, _ := v.(map[string]any)
	return maps.Clone(have), err
}

// expand returns the repository in the form of apt's files (aptpkg._expand_repo_def).
func (m *manager) expand() (map[string]any, error) {
	repo := m.repo
	if os := m.Grain("os"); strings.HasPrefix(repo, "ppa:") && (os == "Ubuntu" || os == "Mint" || os == "neon") {
		owner, name, ok := strings.Cut(repo[len("ppa:"):], "/")
		if !ok {
			return nil, &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 2, got 1)"}
		}
		dist := pytext.Str(m.Grain("oscodename"))
		repo = "deb http://ppa.launchpad.net/" + owner + "/" + name + "/ubuntu " + dist + " main"
		if has(m.kw, "ppa_auth") {
			repo = "deb https://" + pytext.Str(m.kw["ppa_auth"]) + "@private-ppa.launchpad.net/" + owner + "/" + name + "/ubuntu " + dist + " main"
		}
	}
	s, err := aptsource.Parse(repo, "")
	if err != nil {
		return nil, err
	}
	for key, into := range map[string]*[]string{"architectures": &s.Architectures, "comps": &s.Comps} {
		if !has(m.kw, key) {
			continue
		}
		text, ok := m.kw[key].(string)
		if !ok {
			return nil, modules.NoAttribute(m.kw[key], "split")
		}
		*into = pkglist.SplitInput(text)
	}
	for key, into := range map[string]*string{"uri": &s.URI, "dist": &s.Dist, "signedby": &s.SignedBy} {
		if has(m.kw, key) {
			*into = pytext.Str(m.kw[key])
		}
	}
	s.Disabled = pytext.Truth(m.kw["disabled"])
	// Salt formats the line again and reads the result; the argument file is lost on the way.
	var opts []string
	if len(s.Architectures) > 0 {
		opts = append(opts, "arch="+strings.Join(s.Architectures, ","))
	}
	if s.SignedBy != "" {
		opts = append(opts, "signed-by="+s.SignedBy)
	}
	parts := []string{s.Kind}
	if opts != nil {
		parts = append(parts, "["+strings.Join(opts, " ")+"]")
	}
	parts = append(parts, s.URI, s.Dist, strings.Join(s.Comps, " "))
	line := strings.Join(slices.DeleteFunc(parts, func(p string) bool { return pytext.Strip(p) == "" }), " ")
	fresh, err := aptsource.Parse(line, "")
	if err != nil {
		return nil, err
	}
	fresh.Disabled = s.Disabled
	return map[string]any{
		"file": fresh.File, "comps": nested.Anys(fresh.Comps), "disabled": fresh.Disabled, "dist": fresh.Dist, "type": fresh.Kind, "uri": fresh.URI,
		"line": strings.TrimSpace(fresh.String()), "architectures": nested.Anys(fresh.Architectures), "signedby": s.SignedBy,
	}, nil
}

// stale reports whether the file that is to be emptied has anything else in it.
func (m *manager) stale() bool {
	if !pytext.Truth(m.kw["clean_file"]) || !pytext.Truth(m.kw["file"]) {
		return false
	}
	path := m.Path(pytext.Str(m.kw["file"]))
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false // what comes next tells
	}
	defer f.Close()
	want := pytext.Strip(m.name)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := pytext.Strip(lines.Text()); line != "" && !strings.HasPrefix(line, "#") && line != want {
			return true
		}
	}
	return false
}

// configured reports whether the repository is as it should be.
func (m *manager) configured() (bool, error) {
	for key, v := range m.want {
		have, ok := m.pre[key]
		if !ok {
			if key == "enabled" && m.family == "RedHat" && pytext.IsTrue(v) {
				continue
			}
			return false, nil
		}
		same, err := m.same(key, v, have)
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (m *manager) same(key string, v, have any) (bool, error) {
	switch {
	case key == "comps", key == "key_url":
		a, ok1 := v.([]any)
		b, ok2 := have.([]any)
		if !ok1 || !ok2 {
			return pytext.Str(v) == pytext.Str(have), nil
		}
		return slices.Equal(sorted(a), sorted(b)), nil
	case key == "line" && m.family == "Debian":
		if pytext.Truth(m.want["disabled"]) {
			return true, nil
		}
		return m.sameLine(pytext.Str(v), pytext.Str(have)), nil
	case key == "comments" && m.family == "RedHat":
		return rpmComments(v) == rpmComments(have), nil
	case key == "architectures" && pytext.Truth(v):
		return slices.Equal(slices.Compact(sorted(v)), slices.Compact(sorted(have))), nil
	}
	_, b1 := v.(bool)
	_, b2 := have.(bool)
	if (m.family == "RedHat" || m.family == "Suse") && (b1 || b2) {
		return pytext.IsTrue(v) == pytext.IsTrue(have), nil
	}
	return pytext.Str(v) == pytext.Str(have), nil
}

// sorted returns the elements of a list as sorted texts.
func sorted(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = pytext.Str(x)
	}
	slices.Sort(out)
	return out
}

// sameLine compares lines of apt, with the components in any order.
func (m *manager) sameLine(want, have string) bool {
	parts := func(line string) []string {
		words := strings.Fields(line)
		if len(words) > 3 {
			slices.Sort(words[3:])
		}
		return words
	}
	before, comment, _ := strings.Cut(have, "#")
	if !slices.Equal(parts(want), parts(before)) {
		return false
	}
	if !has(m.kw, "comments") {
		return true
	}
	return pytext.Strip(comment) == debComments(m.kw["comments"])
}

// debComments returns a comment, or a list of comments, in the form of apt's lines (salt/utils/pkg/deb.py
// combine_comments).
func debComments(v any) string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = pytext.Str(x)
	}
	return pytext.Strip(strings.Join(texts, " "))
}

// rpmComments is like debComments for files of dnf (salt/utils/pkg/rpm.py).
func rpmComments(v any) string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var b strings.Builder
	for _, x := range list {
		b.WriteString("# " + pytext.StripLeft(strings.TrimLeft(pytext.Str(x), "#")) + "\n")
	}
	return b.String()
}

// configure sets the repository up.
func (m *manager) configure() (*states.Result, error) {
	if pytext.Truth(m.kw["clean_file"]) {
		file, ok := m.kw["file"]
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: "'file'"}
		}
		if err := os.WriteFile(m.Path(pytext.Str(file)), nil, 0o644); err != nil {
			return nil, modules.OSError(err)
		}
	}
	kw := maps.Clone(m.kw)
	if m.family == "Debian" {
		kw["saltenv"] = m.Saltenv()
		kw["aptkey"] = pytext.Truth(m.Value("aptkey")) && m.Which("apt-key") != ""
	}
	if _, err := m.ExecKw(m.ctx, "pkg.mod_repo", []any{m.repo}, kw); err != nil {
		return m.ret.As(states.False, "Failed to configure repo '"+m.name+"': "+states.ErrorText(err))
	}
	post, err := m.look()
	if err != nil {
		return m.ret.As(states.False, "Failed to confirm config of repo '"+m.name+"': "+states.ErrorText(err))
	}
	if len(m.pre) == 0 {
		m.ret.Changes["repo"] = m.repo
	} else {
		for key := range m.want {
			if !nested.Equal(post[key], m.pre[key]) {
				m.ret.Changes[key] = map[string]any{"new": post[key], "old": m.pre[key]}
			}
		}
	}
	return m.ret.As(states.True, "Configured package repo '"+m.name+"'")
}

// absent implements pkgrepo.absent.
func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	kw, name := c.OwnKeywords(), c.Name()
	family, host := pytext.Str(c.Grain("os_family")), c.Grain("os")
	short := func(key string) {
		if name = pytext.Str(kw[key]); !strings.HasPrefix(name, key+":") {
			name = key + ":" + name
		}
		delete(kw, key)
	}
	if has(kw, "ppa") && (host == "Ubuntu" || host == "Mint") {
		short("ppa")
	}
	if has(kw, "copr") && family == "RedHat" {
		short("copr")
	}
	withKey := kw["keyid"] != nil || kw["keyid_ppa"] != nil
	if withKey && !pkglist.Has(c.Call, "pkg.del_repo_key") {
		return ret.As(states.False, "Repo key management is not implemented for this platform")
	}
	plain := name
	if family == "Debian" {
		plain = stripURI(name)
	}
	v, err := c.ExecKw(ctx, "pkg.get_repo", []any{plain}, kw)
	if modules.IsExecError(err) {
		return ret.As(states.False, "Failed to configure repo '"+name+"': "+states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	repo, _ := v.(map[string]any)
	providers, _ := c.Opt("providers").(map[string]any)
	if len(repo) > 0 && (strings.EqualFold(family, "Debian") || providers["pkg"] == "aptpkg") {
		s, err := aptsource.Parse(plain, "")
		if err != nil {
			return nil, err
		}
		want := slices.Compact(slices.Sorted(slices.Values(s.Architectures)))
		if !slices.Equal(want, slices.Compact(sorted(repo["architectures"]))) {
			repo = nil
		}
	}
	if len(repo) == 0 {
		return ret.As(states.True, "Package repo "+name+" is absent")
	}
	if c.Test() {
		return ret.As(states.None, "Package repo '"+name+"' will be removed. This may cause pkg states to behave differently than stated if this action "+
			"is repeated without test=True, due to the differences in the configured repositories.")
	}
	return remove(ctx, c, ret, name, plain, kw, withKey)
}

func remove(ctx context.Context, c *states.Call, ret *states.Result, name, plain string, kw map[string]any, withKey bool) (*states.Result, error) {
	caught := func(err error) bool {
		var usage *modules.UsageError
		return modules.IsExecError(err) || errors.As(err, &usage)
	}
	del := maps.Clone(kw)
	del["repo"] = plain
	if _, err := c.ExecKw(ctx, "pkg.del_repo", nil, del); caught(err) {
		return ret.As(states.False, states.ErrorText(err))
	} else if err != nil {
		return nil, err
	}
	v, err := c.Exec(ctx, "pkg.list_repos")
	if err != nil {
		return nil, err
	}
	repos, _ := v.(map[string]any)
	if has(repos, plain) {
		return ret.As(states.False, "Failed to remove repo "+name)
	}
	ret.Changes["repo"] = name
	ret.Result, ret.Comment = states.True, "Removed repo "+name
	if !withKey {
		return ret, nil
	}
	id, err := c.ExecKw(ctx, "pkg.del_repo_key", []any{plain}, kw)
	switch {
	case caught(err):
		return ret.As(states.False, ret.Comment+", but failed to remove key: "+states.ErrorText(err))
	case err != nil:
		return nil, err
	}
	ret.Changes["keyid"] = id
	return ret.As(states.True, ret.Comment+", and keyid "+pytext.Str(id))
}

// stripURI takes the slash from the end of addresses (salt/utils/pkg/deb.py strip_uri).
func stripURI(repo string) string {
	words := strings.Fields(repo)
	for i, w := range words {
		if strings.HasPrefix(w, "http://") || strings.HasPrefix(w, "https://") || strings.HasPrefix(w, "ftp://") {
			words[i] = strings.TrimRight(w, "/")
		}
	}
	return strings.Join(words, " ")
}
