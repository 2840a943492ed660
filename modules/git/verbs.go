package git

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

func add(ctx context.Context, c *modules.Call) (any, error) {
	args, err := withOpts(c, []string{"-v", "--verbose"}, "add", "--verbose")
	if err != nil {
		return nil, err
	}
	return output(ctx, c, append(args, "--", c.Value("filename")), command{})
}

func archive(ctx context.Context, c *modules.Call) (any, error) {
	cwd, target := directory(ctx, c), expand(ctx, c, c.Str("output"))
	kw, err := known(c, "format")
	if err != nil {
		return nil, err
	}
	args, err := verb(c, "archive")
	if err != nil {
		return nil, err
	}
	if prefix := c.Value("prefix"); prefix != "" {
		if !pytext.Truth(prefix) {
			prefix = filepath.Base(cwd) + "/"
		}
		args = append(args, "--prefix", prefix)
	}
	if format := kw["format"]; pytext.Truth(format) {
		args = append(args, "--format", format)
	}
	return done(output(ctx, c, append(args, "--output", target, c.Value("rev")), command{}))
}

// done answers true.
func done(_ any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return true, nil
}

func branch(ctx context.Context, c *modules.Call) (any, error) {
	var name []any
	if c.Value("name") != nil {
		name = []any{c.Value("name")}
	}
	return done(simple(ctx, c, command{}, "branch", name...))
}

func checkout(ctx context.Context, c *modules.Call) (any, error) {
	words := []string{"checkout"}
	if c.Bool("force") {
		words = append(words, "--force")
	}
	args, err := withOpts(c, nil, words...)
	if err != nil {
		return nil, err
	}
	if rev := c.Value("rev"); rev != nil {
		args = append(args, rev)
	} else if opts, _ := options(c.Value("opts")); !slices.Contains(opts, any("-b")) && !slices.Contains(opts, any("-B")) {
		return nil, modules.Usagef("'rev' argument is required unless -b or -B in opts")
	}
	return output(ctx, c, args, command{merge: true})
}

func clone(ctx context.Context, c *modules.Call) (any, error) {
	cwd := directory(ctx, c)
	if !c.Bool("url") {
		return nil, modules.Usagef("Missing 'url' argument")
	}
	link, err := address(c.Value("url"), c.Value("https_user"), c.Value("https_pass"))
	if err != nil {
		return nil, err
	}
	args, err := withOpts(c, nil, "clone")
	if err != nil {
		return nil, err
	}
	args = append(args, "--", link)
	dir := "/tmp"
	if name := c.Value("name"); name != nil {
		args, dir = append(args, name), cwd
		if err := os.MkdirAll(c.Path(cwd), 0o755); err != nil {
			return nil, modules.OSError(err)
		}
	} else {
		args = append(args, cwd)
	}
	return done(output(ctx, c, args, command{dir: dir, ssh: true}))
}

func commit(ctx context.Context, c *modules.Call) (any, error) {
	args, err := withOpts(c, nil, "commit", "-m", c.Str("message"))
	if err != nil {
		return nil, err
	}
	if c.Bool("filename") {
		args = append(args, "--", c.Value("filename"))
	}
	return output(ctx, c, args, command{})
}

func currentBranch(ctx context.Context, c *modules.Call) (any, error) {
	return output(ctx, c, []any{"git", "rev-parse", "--abbrev-ref", "HEAD"}, command{})
}

func describe(ctx context.Context, c *modules.Call) (any, error) {
	return output(ctx, c, []any{"git", "describe", "--always", c.Value("rev")}, command{})
}

func diff(ctx context.Context, c *modules.Call) (any, error) {
	noIndex, cached := c.Bool("no_index"), c.Bool("cached")
	if noIndex && cached {
		return nil, modules.Errorf("The 'no_index' and 'cached' options cannot be used together")
	}
	args, err := withOpts(c, nil, "diff")
	if err != nil {
		return nil, err
	}
	more := command{dir: c.Value("cwd"), merge: true}
	switch {
	case noIndex:
		args, more.quiet, more.soft = append(args, "--no-index"), true, true
	case cached:
		args = append(args, "--cached")
		if c.Bool("item1") {
			args = append(args, c.Value("item1"))
		}
	default:
		for _, name := range []string{"item1", "item2"} {
			if c.Bool(name) {
				args = append(args, c.Value(name))
			}
		}
	}
	if paths := words(c.Value("paths")); len(paths) > 0 {
		args = append(append(args, "--"), paths...)
	}
	return output(ctx, c, args, more)
}

// words returns the elements of a list, or the parts of a text between commas.
func words(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return nested.Anys(strings.Split(pytext.Str(v), ","))
}

func discardLocalChanges(ctx context.Context, c *modules.Call) (any, error) {
	return output(ctx, c, []any{"git", "checkout", "--", c.Value("path")}, command{merge: true})
}

// update matches a line in which git fetch reports a change.
var update = lazyre.Regexp{Expr: `^[\s*]*(?:([0-9a-f]+)\.\.([0-9a-f]+)|\[(?:new (tag|branch)|tag update)\])\s+(.+)->`}

func fetch(ctx context.Context, c *modules.Call) (any, error) {
	first := []string{"fetch"}
	if c.Bool("force") {
		first = append(first, "--force")
	}
	args, err := withOpts(c, []string{"-f", "--force"}, first...)
	if err != nil {
		return nil, err
	}
	if c.Bool("remote") {
		args = append(args, c.Value("remote"))
	}
	v, err := output(ctx, c, append(args, words(c.Value("refspecs"))...), command{merge: true, ssh: true})
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	push := func(key, name string) {
		list, _ := ret[key].([]any)
		ret[key] = append(list, name)
	}
	for line := range strings.SplitSeq(v.(string), "\n") {
		m := update.Get().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := strings.TrimRight(m[4], " \t")
		switch {
		case m[3] == "tag":
			push("new tags", name)
		case m[3] == "branch":
			push("new branches", name)
		case m[1] != "":
			branches, _ := ret["updated branches"].(map[string]any)
			if branches == nil {
				branches = map[string]any{}
				ret["updated branches"] = branches
			}
			branches[name] = map[string]any{"old": m[1], "new": m[2]}
		default:
			push("updated tags", name)
		}
	}
	return ret, nil
}

func initialize(ctx context.Context, c *modules.Call) (any, error) {
	first := []string{"init"}
	if c.Bool("bare") {
		first = append(first, "--bare")
	}
	for _, o := range [][2]string{{"template", "--template="}, {"separate_git_dir", "--separate-git-dir="}} {
		if c.Value(o[0]) != nil {
			first = append(first, o[1]+c.Str(o[0]))
		}
	}
	switch shared := c.Value("shared").(type) {
	case nil:
	case int64:
		first = append(first, "--shared=0"+pytext.Str(shared))
	case string:
		first = append(first, "--shared="+shared)
	default:
		first = append(first, "--shared="+strings.ToLower(pytext.Str(shared)))
	}
	args, err := withOpts(c, nil, first...)
	if err != nil {
		return nil, err
	}
	return output(ctx, c, append(args, directory(ctx, c)), command{dir: ""})
}

func listBranches(ctx context.Context, c *modules.Call) (any, error) {
	where := "refs/heads/"
	if c.Bool("remote") {
		where = "refs/remotes/"
	}
	return refs(ctx, c, where)
}

func listTags(ctx context.Context, c *modules.Call) (any, error) { return refs(ctx, c, "refs/tags/") }

func refs(ctx context.Context, c *modules.Call, where string) (any, error) {
	v, err := output(ctx, c, []any{"git", "for-each-ref", "--format", "%(refname:short)", where}, command{})
	if err != nil {
		return nil, err
	}
	return lines(v.(string)), nil
}

// hashes reads lines of a hash and a name.
func hashes(text string) map[string]any {
	ret := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		if hash, name, ok := strings.Cut(line, "\t"); ok {
			ret[name] = hash
		}
	}
	return ret
}

func lsRemote(ctx context.Context, c *modules.Call) (any, error) {
	more := command{dir: "", ssh: true}
	if c.Value("cwd") != nil {
		more.dir = directory(ctx, c)
	}
	remote, err := address(c.Value("remote"), c.Value("https_user"), c.Value("https_pass"))
	if err != nil {
		return nil, err
	}
	args, err := withOpts(c, nil, "ls-remote")
	if err != nil {
		return nil, err
	}
	args = append(args, remote)
	if c.Bool("ref") {
		args = append(args, c.Value("ref"))
	}
	v, err := output(ctx, c, args, more)
	if err != nil {
		return nil, err
	}
	return hashes(v.(string)), nil
}

func remoteRefs(ctx context.Context, c *modules.Call) (any, error) {
	kw, err := known(c, "filter")
	if err != nil {
		return nil, err
	}
	args := []any{"git", "ls-remote"}
	for _, o := range []string{"heads", "tags"} {
		if c.Bool(o) {
			args = append(args, "--"+o)
		}
	}
	link, err := address(c.Value("url"), c.Value("https_user"), c.Value("https_pass"))
	if err != nil {
		return nil, err
	}
	args = append(args, link)
	if f := kw["filter"]; pytext.Truth(f) {
		args = append(args, f)
	}
	v, err := output(ctx, c, args, command{dir: "", ssh: true})
	if err != nil {
		return nil, err
	}
	return hashes(v.(string)), nil
}

func merge(ctx context.Context, c *modules.Call) (any, error) {
	if _, err := known(c); err != nil {
		return nil, err
	}
	var rev []any
	if c.Bool("rev") {
		rev = []any{c.Value("rev")}
	}
	return simple(ctx, c, command{ssh: true}, "merge", rev...)
}

func mergeBase(ctx context.Context, c *modules.Call) (any, error) {
	kw, err := known(c, "all")
	if err != nil {
		return nil, err
	}
	all, ancestor, point := pytext.Truth(kw["all"]), c.Bool("is_ancestor"), c.Bool("fork_point")
	if all && (c.Bool("independent") || ancestor || point) {
		return nil, modules.Usagef("The 'all' argument is not compatible with 'independent', 'is_ancestor', or 'fork_point'")
	}
	list := nested.Anys(pkglist.SplitInput(c.Value("refs")))
	n := 0
	for _, name := range []string{"octopus", "independent", "is_ancestor", "fork_point"} {
		if c.Bool(name) {
			n++
		}
	}
	switch {
	case n > 1:
		return nil, modules.Usagef("Only one of 'octopus', 'independent', 'is_ancestor', and 'fork_point' is permitted")
	case ancestor && len(list) != 2:
		return nil, modules.Usagef("Two refs/commits are required if 'is_ancestor' is True")
	case point && len(list) > 1:
		return nil, modules.Usagef("At most one ref/commit can be passed if 'fork_point' is specified")
	case point && len(list) == 0:
		list = []any{"HEAD"}
	}
	args, err := withOpts(c, nil, "merge-base")
	if err != nil {
		return nil, err
	}
	if all {
		args = append(args, "--all")
	}
	switch {
	case c.Bool("octopus"):
		args = append(args, "--octopus")
	case ancestor:
		args = append(args, "--is-ancestor")
	case c.Bool("independent"):
		args = append(args, "--independent")
	case point:
		args = append(args, "--fork-point", c.Value("fork_point"))
	}
	r, err := command{args: append(args, list...), dir: directory(ctx, c), soft: ancestor}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	bases := lines(r.stdout)
	switch {
	case ancestor:
		return r.code == 0, nil
	case all:
		return bases, nil
	case len(bases) == 0:
		return nil, modules.IndexError()
	}
	return bases[0], nil
}

func mergeTree(ctx context.Context, c *modules.Call) (any, error) {
	base := c.Value("base")
	if base == nil {
		r, err := command{args: []any{"git", "merge-base", c.Str("ref1"), c.Str("ref2")}, dir: directory(ctx, c)}.run(ctx, c)
		if err != nil {
			return nil, modules.Errorf("Unable to determine merge base for %s and %s", c.Str("ref1"), c.Str("ref2"))
		}
		base, _, _ = strings.Cut(r.stdout, "\n")
	}
	return output(ctx, c, []any{"git", "merge-tree", base, c.Value("ref1"), c.Value("ref2")}, command{})
}

func pull(ctx context.Context, c *modules.Call) (any, error) {
	return simple(ctx, c, command{ssh: true}, "pull")
}

func push(ctx context.Context, c *modules.Call) (any, error) {
	if _, err := known(c); err != nil {
		return nil, err
	}
	return simple(ctx, c, command{ssh: true}, "push", c.Value("remote"), c.Value("ref"))
}

func rebase(ctx context.Context, c *modules.Call) (any, error) {
	opts, err := options(c.Value("opts"))
	if err != nil {
		return nil, err
	}
	if slices.Contains(opts, any("-i")) || slices.Contains(opts, any("--interactive")) {
		return nil, modules.Usagef("Interactive rebases are not supported")
	}
	rev, err := shlex.Split(c.Str("rev"))
	if err != nil {
		return nil, &modules.PythonError{Type: "ValueError", Msg: err.Error()}
	}
	return simple(ctx, c, command{}, "rebase", nested.Anys(rev)...)
}

func reset(ctx context.Context, c *modules.Call) (any, error) {
	return simple(ctx, c, command{ssh: true}, "reset")
}

func revParse(ctx context.Context, c *modules.Call) (any, error) {
	var rev []any
	if c.Value("rev") != nil {
		rev = []any{c.Value("rev")}
	}
	return simple(ctx, c, command{}, "rev-parse", rev...)
}

func revision(ctx context.Context, c *modules.Call) (any, error) {
	args := []any{"git", "rev-parse"}
	if c.Bool("short") {
		args = append(args, "--short")
	}
	return output(ctx, c, append(args, c.Value("rev")), command{})
}

func rm(ctx context.Context, c *modules.Call) (any, error) {
	return simple(ctx, c, command{}, "rm", "--", c.Value("filename"))
}

func stash(ctx context.Context, c *modules.Call) (any, error) {
	args, err := withOpts(c, nil, "stash", c.Str("action"))
	if err != nil {
		return nil, err
	}
	return output(ctx, c, args, command{})
}

func status(ctx context.Context, c *modules.Call) (any, error) {
	v, err := output(ctx, c, []any{"git", "status", "-z", "--porcelain"}, command{})
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for line := range strings.SplitSeq(v.(string), "\x00") {
		line = strings.TrimLeft(line, " ")
		state, name, ok := strings.Cut(line, " ")
		name = strings.TrimLeft(name, " ")
		if !ok || name == "" {
			continue
		}
		switch state {
		case "M":
			state = "modified"
		case "A":
			state = "new"
		case "D":
			state = "deleted"
		case "??":
			state = "untracked"
		}
		list, _ := ret[state].([]any)
		ret[state] = append(list, name)
	}
	return ret, nil
}

func submodule(ctx context.Context, c *modules.Call) (any, error) {
	kw, err := known(c, "init")
	if err != nil {
		return nil, err
	}
	if pytext.Truth(kw["init"]) {
		return nil, modules.Usagef("The 'init' argument is no longer supported. Either set 'command' to 'init', or include '--init' in the " +
			"'opts' argument and set 'command' to 'update'.")
	}
	args, err := withOpts(c, nil, "submodule", c.Str("command"))
	if err != nil {
		return nil, err
	}
	return output(ctx, c, args, command{ssh: true})
}

func symbolicRef(ctx context.Context, c *modules.Call) (any, error) {
	opts, err := options(c.Value("opts"))
	if err != nil {
		return nil, err
	}
	value := c.Value("value")
	if value != nil && (slices.Contains(opts, any("-d")) || slices.Contains(opts, any("--delete"))) {
		return nil, modules.Usagef("Value cannot be set for symbolic ref if -d/--delete is included in opts")
	}
	more := []any{c.Value("ref")}
	switch v := value.(type) {
	case string:
		if v != "" {
			more = append(more, v)
		}
	case []any:
		more = append(more, v...)
	}
	return simple(ctx, c, command{}, "symbolic-ref", more...)
}

func tag(ctx context.Context, c *modules.Call) (any, error) {
	args, err := verb(c, "tag")
	if err != nil {
		return nil, err
	}
	all, err := options(c.Value("opts"))
	if err != nil {
		return nil, err
	}
	opts := slices.DeleteFunc(all, func(o any) bool { return o == "-a" || o == "--annotate" })
	for _, o := range opts {
		if o == "-m" || strings.Contains(o.(string), "--message") {
			return nil, modules.Usagef(`Tag messages must be passed in the "message" argument`)
		}
	}
	if c.Value("message") != nil {
		args = append(args, "-a", "-m", c.Value("message"))
	}
	args = append(append(args, opts...), c.Value("name"))
	if !slices.Contains(opts, any("-d")) && !slices.Contains(opts, any("--delete")) {
		args = append(args, c.Value("ref"))
	}
	return output(ctx, c, args, command{merge: true})
}
